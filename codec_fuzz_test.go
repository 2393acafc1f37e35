package dynactor

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// Whatever is stored is decoded, or is ErrDecode: never a panic, never another error.
func FuzzDecode(f *testing.F) {
	f.Add("google.protobuf.StringValue", []byte("\n\x01x"))
	f.Add("google.protobuf.Struct", []byte("\n\x05\n\x01a\x12\x00"))
	f.Add("google.protobuf.Empty", []byte{})
	f.Add("google.protobuf.FileDescriptorSet", []byte{0x0a, 0x02, 0x0a, 0x00})
	f.Add("", []byte{0xff})
	c := newCodec(Options{})
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		given := slices.Clone(data)
		m, err := c.decode(name, data)
		if !bytes.Equal(given, data) {
			t.Error("the stored bytes were changed")
		}
		if err != nil {
			if m != nil || !errors.Is(err, ErrDecode) {
				t.Errorf("got %v, %v, want ErrDecode alone", m, err)
			}
			return
		}
		stored, again, err := c.encode(m)
		if err != nil || stored != name {
			t.Fatalf("what was decoded as %q is encoded as %q: %v", name, stored, err)
		}
		if back, err := c.decode(stored, again); err != nil || !proto.Equal(m, back) {
			t.Errorf("got %v, %v, want %v", back, err, m)
		}
	})
}

// An id is accepted or refused with ErrInvalid, by these rules alone.
func FuzzIDs(f *testing.F) {
	for _, id := range []string{"", "a", "kind/identity", "\xff\xfe", "\x00", tableID, tableID + " ", strings.Repeat("é", maxID/2), strings.Repeat("é", maxID/2) + "x"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := checkID(id)
		want := id != "" && len(id) <= 1024 && strings.ToValidUTF8(id, "?") == id && id != "__dynactor__"
		if (err == nil) != want || (err != nil && !errors.Is(err, ErrInvalid)) {
			t.Errorf("%q: got %v, accepted should be %t", id, err, want)
		}
	})
}
