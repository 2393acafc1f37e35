package dynactor

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errGarbled says that an answer is not what the server sent.
var errGarbled = errors.New("answer is empty or does not fit its checksum")

// checkBody makes reading an answer fail when it is empty, which the SDK would
// take for a success, or does not fit the checksum that DynamoDB sends along. The SDK's own check only logs a difference, also when the
// server has sent no checksum.
func checkBody(response *smithyhttp.Response) error {
	header := response.Header.Get("X-Amz-Crc32")
	if header == "" {
		response.Body = &checkedBody{ReadCloser: response.Body, unknown: true}
		return nil
	}
	want, err := strconv.ParseUint(header, 10, 32)
	if err != nil {
		return &smithy.DeserializationError{Err: fmt.Errorf("%w: %w", errGarbled, err)}
	}
	response.Body = &checkedBody{ReadCloser: response.Body, want: uint32(want)}
	return nil
}

// checkedBody fails at its end when the checksum of what was read is not the
// expected one.
type checkedBody struct {
	io.ReadCloser

	want, sum uint32
	unknown   bool // the server sent no checksum
	some      bool // it is not empty, which no answer of DynamoDB is
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.sum = crc32.Update(b.sum, crc32.IEEETable, p[:n])
	b.some = b.some || n > 0
	if err == io.EOF && (!b.some || (!b.unknown && b.sum != b.want)) {
		err = errGarbled
	}
	return n, err
}
