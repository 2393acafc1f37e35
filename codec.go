package dynactor

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Resolver finds the types of stored messages by their full names, and the
// extensions in them. *protoregistry.Types is one. It must be safe for concurrent use.
type Resolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// Upcaster turns what an older version of a program stored into what this one
// understands: given the full name of a message and its bytes, it returns those to
// decode instead, or the same ones. It must not change the bytes it is given, and
// must be safe for concurrent use.
type Upcaster func(name string, data []byte) (newName string, newData []byte, err error)

// codec turns messages into bytes and names and back. It is immutable and safe
// for concurrent use.
type codec struct {
	resolver  Resolver
	upcasters []Upcaster
}

func newCodec(o Options) *codec {
	c := &codec{resolver: o.Resolver, upcasters: o.Upcasters}
	if c.resolver == nil {
		c.resolver = protoregistry.GlobalTypes
	}
	return c
}

// encode returns a message's full name and bytes. It refuses what decode would
// not know, and survives messages that panic, because users' types may embed a
// nil message.
func (c *codec) encode(m proto.Message) (name string, data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: message %T cannot be encoded: panic: %v", ErrInvalid, m, r)
		}
	}()
	if m == nil {
		return "", nil, fmt.Errorf("%w: message is nil", ErrInvalid)
	}
	r := m.ProtoReflect()
	if !r.IsValid() {
		return "", nil, fmt.Errorf("%w: message is a nil %T", ErrInvalid, m)
	}
	name = string(r.Descriptor().FullName())
	if name == "" {
		return "", nil, fmt.Errorf("%w: message %T has no protobuf name", ErrInvalid, m)
	}
	data, err = proto.Marshal(m)
	if err != nil {
		return "", nil, fmt.Errorf("%w: message %s cannot be encoded: %w", ErrInvalid, name, err)
	}
	if _, unknown := c.resolver.FindMessageByName(r.Descriptor().FullName()); unknown != nil {
		// What cannot be read again must not become history. An upcaster may know it.
		if _, err := c.decode(name, data); err != nil {
			return "", nil, fmt.Errorf("%w: message %s could not be decoded again: %s", ErrInvalid, name, err.Error())
		}
	}
	if data == nil {
		data = []byte{} // stored as empty bytes, not as an absent value
	}
	return name, data, nil
}

// decode is the reverse. Its errors match ErrDecode and name the stored type.
func (c *codec) decode(name string, data []byte) (m proto.Message, err error) {
	stored := name
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("%w: type %q: panic: %v", ErrDecode, stored, r)
		}
	}()
	for _, up := range c.upcasters {
		if name, data, err = up(name, data); err != nil {
			return nil, fmt.Errorf("%w: type %q: upcaster: %w", ErrDecode, stored, err)
		}
	}
	t, err := c.resolver.FindMessageByName(protoreflect.FullName(name))
	if errors.Is(err, protoregistry.NotFound) {
		return nil, fmt.Errorf("%w: type %s is not registered", ErrDecode, typeName(name, stored))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: type %s: %w", ErrDecode, typeName(name, stored), err)
	}
	m = t.New().Interface()
	if err := (proto.UnmarshalOptions{Resolver: c.resolver}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: bytes of type %s: %w", ErrDecode, typeName(name, stored), err)
	}
	return m, nil
}

// typeName shows a type, and what it was stored as where an upcaster changed that.
func typeName(name, stored string) string {
	if name == stored {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q (stored as %q)", name, stored)
}

// maxID is the longest persistence id in bytes. DynamoDB takes partition keys of
// 2,048; the rest is for the prefixes and suffixes of layouts.
const maxID = 1024

// checkID refuses what cannot be a persistence id.
func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: persistence id is empty", ErrInvalid)
	case len(id) > maxID:
		return fmt.Errorf("%w: persistence id of %d bytes is longer than %d", ErrInvalid, len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: persistence id %q is not valid UTF-8", ErrInvalid, id)
	case id == tableID:
		return fmt.Errorf("%w: persistence id %q is reserved", ErrInvalid, id)
	}
	return nil
}
