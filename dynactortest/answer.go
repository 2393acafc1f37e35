package dynactortest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
)

const (
	contentType  = "application/x-amz-json-1.0"
	crcHeader    = "X-Amz-Crc32"
	lengthHeader = "Content-Length"
	sumHeader    = "X-Amz-Content-Sha256"
	targetHeader = "X-Amz-Target"
	targetPrefix = "DynamoDB_20120810."
	errorPrefix  = "com.amazonaws.dynamodb.v20120810#"
)

// answer is a response that has been read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	broken error // how reading ends after body, nil for a whole body
}

// exchange sends body as the request req and reads the whole answer.
func exchange(base http.RoundTripper, req *http.Request, body []byte) (*answer, error) {
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.ContentLength = int64(len(body))
	if out.Header.Get(sumHeader) != "" {
		sum := sha256.Sum256(body)
		out.Header.Set(sumHeader, hex.EncodeToString(sum[:]))
	}
	resp, err := base.RoundTrip(out)
	if err != nil {
		return nil, err //nolint:wrapcheck // the SDK must see the transport's own error
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	return &answer{status: resp.StatusCode, header: resp.Header.Clone(), body: got}, nil
}

// jsonAnswer is an answer of our own making.
func jsonAnswer(status int, value any) *answer {
	return &answer{status: status, header: jsonHeader(), body: encode(value)}
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {contentType}} }

// errorAnswer is an error in DynamoDB's form.
func errorAnswer(status int, code, message string) *answer {
	return jsonAnswer(status, map[string]string{"__type": errorPrefix + code, "message": message})
}

// with returns a with another body and a checksum that fits it.
func (a *answer) with(body []byte) *answer {
	out := &answer{status: a.status, header: a.header.Clone(), body: body, broken: a.broken}
	if out.header.Get(crcHeader) != "" {
		out.header.Set(crcHeader, checksum(body))
	}
	if out.header.Get(lengthHeader) != "" {
		out.header.Set(lengthHeader, strconv.Itoa(len(body)))
	}
	return out
}

// ok says whether the server did what was asked.
func (a *answer) ok() bool { return a.status == http.StatusOK }

func (a *answer) response(req *http.Request) *http.Response {
	resp := &http.Response{
		Status:        strconv.Itoa(a.status) + " " + http.StatusText(a.status),
		StatusCode:    a.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        a.header,
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
		Request:       req,
	}
	if a.broken != nil {
		resp.ContentLength = -1
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(a.body), failingReader{a.broken}))
	}
	return resp
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func checksum(body []byte) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
}
