package dynactor

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// must returns a value that cannot fail to be made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCodec_RoundTrip(t *testing.T) {
	t.Parallel()
	c := newCodec(Options{})
	for name, m := range map[string]proto.Message{
		"E10 empty, no bytes":        &emptypb.Empty{},
		"E10 zero value, no bytes":   wrapperspb.Int64(0),
		"E11 empty string":           wrapperspb.String(""),
		"E11 NaN":                    wrapperspb.Double(math.NaN()),
		"E11 infinite":               wrapperspb.Double(math.Inf(1)),
		"E11 large":                  wrapperspb.Double(1e300),
		"E05 beyond 2^53":            wrapperspb.Int64(1<<53 + 1),
		"E05 largest":                wrapperspb.UInt64(math.MaxUint64),
		"E07 control characters":     wrapperspb.String("\x00\"\n#.\u2028"),
		"bytes":                      wrapperspb.Bytes([]byte{0, 255, 254}),
		"time":                       timestamppb.New(timestamppb.Now().AsTime()),
		"duration":                   durationpb.New(-1),
		"field mask":                 must(fieldmaskpb.New(&typepb.Type{}, "name", "fields")),
		"nested, E11 with empty map": must(structpb.NewStruct(map[string]any{"a": []any{1, nil, map[string]any{}}, "": "x"})),
		"any":                        must(anypb.New(wrapperspb.String("inside"))),
		"nested messages":            &typepb.Type{Name: "n", Fields: []*typepb.Field{{Number: 1, Options: []*typepb.Option{{Name: "o"}}}}},
		"proto2":                     &descriptorpb.FieldDescriptorProto{Name: proto.String(""), Number: proto.Int32(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := proto.Clone(m)
			stored, data, err := c.encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if stored != string(m.ProtoReflect().Descriptor().FullName()) || data == nil {
				t.Errorf("stored as %q, %v", stored, data)
			}
			if n := proto.Size(m); len(data) != n {
				t.Errorf("%d bytes, want %d", len(data), n)
			}
			got, err := c.decode(stored, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, got, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-stored +loaded):\n%s", diff)
			}
			if got == m {
				t.Error("the message itself came back")
			}
		})
	}
}

// nobody is a message whose methods panic, because it embeds a nil one.
type nobody struct{ proto.Message }

// nameless reflects to a message without a name.
type nameless struct{ proto.Message }

func (n nameless) ProtoReflect() protoreflect.Message {
	return namelessReflect{n.Message.ProtoReflect()}
}

type namelessReflect struct{ protoreflect.Message }

func (namelessReflect) Descriptor() protoreflect.MessageDescriptor { return namelessDescriptor{} }

type namelessDescriptor struct{ protoreflect.MessageDescriptor }

func (namelessDescriptor) FullName() protoreflect.FullName { return "" }

func TestCodec_Unencodable(t *testing.T) {
	t.Parallel()
	files := testFiles(t)
	required := dynamicpb.NewMessage(must(files.FindDescriptorByName("bank.v1.Required")).(protoreflect.MessageDescriptor))
	for name, tc := range map[string]struct {
		m    proto.Message
		want string
	}{
		"nil":                {nil, "message is nil"},
		"typed nil":          {(*wrapperspb.StringValue)(nil), "message is a nil *wrapperspb.StringValue"},
		"nil inside":         {nobody{}, "message dynactor.nobody cannot be encoded: panic: "},
		"nil pointer inside": {(*nobody)(nil), "message *dynactor.nobody cannot be encoded: panic: "},
		"no name":            {nameless{&emptypb.Empty{}}, "has no protobuf name"},
		"not UTF-8":          {wrapperspb.String("\xff"), "message google.protobuf.StringValue cannot be encoded: "},
		"required, not set":  {required, "message bank.v1.Required cannot be encoded: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, data, err := newCodec(Options{}).encode(tc.m)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, %v, want ErrInvalid and %q", got, data, err, tc.want)
			}
		})
	}
}

func TestCodec_Undecodable(t *testing.T) {
	t.Parallel()
	const text = "google.protobuf.StringValue"
	for name, tc := range map[string]struct {
		o    Options
		name string
		data []byte
		want string
	}{
		"L01 unknown type":      {name: "bank.v1.Unknown", want: `type "bank.v1.Unknown" is not registered`},
		"no type":               {name: "", want: `type "" is not registered`},
		"no name of a type":     {name: "../x\x00", want: `type "../x\x00" is not registered`},
		"an enum":               {name: "google.protobuf.NullValue", want: `type "google.protobuf.NullValue"`},
		"C13 flipped byte":      {name: text, data: []byte{0x0b, 1, 'x'}, want: `bytes of type "` + text + `"`},
		"cut short":             {name: text, data: []byte{0x0a, 9, 'x'}, want: `bytes of type "` + text + `"`},
		"not UTF-8":             {name: text, data: []byte{0x0a, 1, 0xff}, want: `bytes of type "` + text + `"`},
		"another type":          {name: "google.protobuf.Int64Value", data: []byte{0x0a, 9, 'x'}, want: `bytes of type "google.protobuf.Int64Value"`},
		"a resolver that fails": {o: Options{Resolver: badResolver{}}, name: text, want: `type "` + text + `": registry is away`},
		"a resolver that panics": {
			o: Options{Resolver: badResolver{panics: true}}, name: text, want: `type "` + text + `": panic: registry is away`,
		},
		"L03 an upcaster that fails": {
			o:    Options{Upcasters: []Upcaster{func(string, []byte) (string, []byte, error) { return "x", nil, errAway }}},
			name: text, want: `type "` + text + `": upcaster: registry is away`,
		},
		"L03 an upcaster that panics": {
			o:    Options{Upcasters: []Upcaster{func(string, []byte) (string, []byte, error) { panic(errAway) }}},
			name: text, want: `type "` + text + `": panic: registry is away`,
		},
		"L03 an upcaster to an unknown type": {
			o:    Options{Upcasters: []Upcaster{rename(text, "bank.v2.Text")}},
			name: text, want: `type "bank.v2.Text" (stored as "` + text + `") is not registered`,
		},
		"L03 an upcaster to other bytes": {
			o:    Options{Upcasters: []Upcaster{rename(text, "google.protobuf.Int64Value")}},
			name: text, data: []byte{0x0a, 9, 'x'}, want: `bytes of type "google.protobuf.Int64Value" (stored as "` + text + `"): `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := newCodec(tc.o).decode(tc.name, tc.data)
			if m != nil || !errors.Is(err, ErrDecode) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want ErrDecode and %q", m, err, tc.want)
			}
		})
	}
	_, err := newCodec(Options{Resolver: badResolver{}}).decode(text, nil)
	if !errors.Is(err, errAway) {
		t.Errorf("the resolver's error is lost in %v", err)
	}
}

var errAway = errors.New("registry is away")

type badResolver struct {
	Resolver

	panics bool
}

func (r badResolver) FindMessageByName(protoreflect.FullName) (protoreflect.MessageType, error) {
	if r.panics {
		panic(errAway)
	}
	return nil, errAway
}

// rename is an upcaster that only gives a message another name.
func rename(from, to string) Upcaster {
	return func(name string, data []byte) (string, []byte, error) {
		if name == from {
			name = to
		}
		return name, data, nil
	}
}

// testFiles are descriptors that are in no global registry.
func testFiles(t *testing.T) *protoregistry.Files {
	t.Helper()
	field := func(name string, n int32, label descriptorpb.FieldDescriptorProto_Label, typ descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &n, Label: label.Enum(), Type: typ.Enum()}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	const (
		optional = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		required = descriptorpb.FieldDescriptorProto_LABEL_REQUIRED
		str      = descriptorpb.FieldDescriptorProto_TYPE_STRING
		num      = descriptorpb.FieldDescriptorProto_TYPE_INT64
		message  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	)
	extension := field("note", 100, optional, str, "")
	extension.Extendee = proto.String(".bank.v1.Deposit")
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(anypb.File_google_protobuf_any_proto),
		{
			Name: proto.String("bank.proto"), Package: proto.String("bank.v1"), Syntax: proto.String("proto2"),
			Dependency: []string{"google/protobuf/any.proto"},
			MessageType: []*descriptorpb.DescriptorProto{
				{
					Name: proto.String("Deposit"), ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(100), End: proto.Int32(200)}},
					Field: []*descriptorpb.FieldDescriptorProto{field("cents", 1, optional, num, ""), field("details", 2, optional, message, ".google.protobuf.Any")},
				},
				{Name: proto.String("Required"), Field: []*descriptorpb.FieldDescriptorProto{field("id", 1, required, str, "")}},
			},
			Extension: []*descriptorpb.FieldDescriptorProto{extension},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// L01: a type that only the given resolver knows, with what is nested in it.
func TestCodec_L01_Resolver(t *testing.T) {
	t.Parallel()
	files, reg := testFiles(t), new(protoregistry.Types)
	deposit := dynamicpb.NewMessageType(must(files.FindDescriptorByName("bank.v1.Deposit")).(protoreflect.MessageDescriptor))
	note := dynamicpb.NewExtensionType(must(files.FindDescriptorByName("bank.v1.note")).(protoreflect.ExtensionDescriptor))
	if err := errors.Join(reg.RegisterMessage(deposit), reg.RegisterExtension(note)); err != nil {
		t.Fatal(err)
	}
	inner := deposit.New().Interface()
	inner.ProtoReflect().Set(deposit.Descriptor().Fields().ByName("cents"), protoreflect.ValueOfInt64(7))
	m := deposit.New().Interface()
	m.ProtoReflect().Set(deposit.Descriptor().Fields().ByName("cents"), protoreflect.ValueOfInt64(42))
	m.ProtoReflect().Set(deposit.Descriptor().Fields().ByName("details"), protoreflect.ValueOfMessage(must(anypb.New(inner)).ProtoReflect()))
	proto.SetExtension(m, note, "cash")

	if _, _, err := newCodec(Options{}).encode(m); !errors.Is(err, ErrInvalid) {
		t.Errorf("without the resolver: got %v, want ErrInvalid", err)
	}
	name, data, err := newCodec(Options{Resolver: reg}).encode(m)
	if err != nil || name != "bank.v1.Deposit" {
		t.Fatalf("encoded as %q, %v", name, err)
	}
	got, err := newCodec(Options{Resolver: reg}).decode(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fmt.Sprint(m), fmt.Sprint(got)); diff != "" {
		t.Errorf("(-stored +loaded):\n%s", diff)
	}
	if proto.GetExtension(got, note) != "cash" || len(got.ProtoReflect().GetUnknown()) != 0 {
		t.Errorf("the extension is lost in %v", got)
	}
	nested := got.ProtoReflect().Get(deposit.Descriptor().Fields().ByName("details")).Message()
	details := &anypb.Any{
		TypeUrl: nested.Get(nested.Descriptor().Fields().ByName("type_url")).String(),
		Value:   nested.Get(nested.Descriptor().Fields().ByName("value")).Bytes(),
	}
	opened, err := anypb.UnmarshalNew(details, proto.UnmarshalOptions{Resolver: reg})
	if err != nil || !proto.Equal(inner, opened) {
		t.Errorf("the nested message is %v, %v, want %v", opened, err, inner)
	}

	if _, err := newCodec(Options{}).decode(name, data); !errors.Is(err, ErrDecode) {
		t.Errorf("without the resolver: got %v, want ErrDecode", err)
	}
	if _, err := newCodec(Options{Resolver: reg}).decode("google.protobuf.StringValue", nil); !errors.Is(err, ErrDecode) {
		t.Errorf("a type that only the global registry knows: got %v, want ErrDecode", err)
	}
}

// L03: what an older version stored is decoded as what this one understands.
func TestCodec_L03_Upcasters(t *testing.T) {
	t.Parallel()
	data := must(proto.Marshal(wrapperspb.Int64(42)))
	given := slices.Clone(data)
	toText := func(name string, data []byte) (string, []byte, error) {
		if name != "bank.v1.Amount" {
			return name, data, nil
		}
		old := &wrapperspb.Int64Value{}
		if err := proto.Unmarshal(data, old); err != nil {
			return "", nil, err
		}
		data, err := proto.Marshal(wrapperspb.String(fmt.Sprint(old.GetValue(), " cents")))
		return "google.protobuf.StringValue", data, err
	}
	for name, tc := range map[string]struct {
		upcasters []Upcaster
		stored    string
		want      proto.Message
	}{
		"renamed":              {[]Upcaster{rename("bank.v0.Amount", "google.protobuf.Int64Value")}, "bank.v0.Amount", wrapperspb.Int64(42)},
		"reshaped":             {[]Upcaster{toText}, "bank.v1.Amount", wrapperspb.String("42 cents")},
		"one after the other":  {[]Upcaster{rename("bank.v0.Amount", "bank.v1.Amount"), toText}, "bank.v0.Amount", wrapperspb.String("42 cents")},
		"the others untouched": {[]Upcaster{rename("bank.v0.Amount", "bank.v1.Amount"), toText}, "google.protobuf.Int64Value", wrapperspb.Int64(42)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newCodec(Options{Upcasters: tc.upcasters}).decode(tc.stored, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if !bytes.Equal(data, given) {
		t.Error("the stored bytes were changed")
	}
}

func TestCodec_UnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	c := newCodec(Options{})
	newer := must(proto.Marshal(&typepb.Field{Name: "n", Number: 7, TypeUrl: "later"}))
	m, err := c.decode("google.protobuf.Empty", newer)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := c.encode(m)
	if err != nil || !bytes.Equal(again, newer) {
		t.Errorf("got %x, %v, want %x", again, err, newer)
	}
}

func TestCodec_IsReproducible(t *testing.T) {
	t.Parallel()
	c := newCodec(Options{})
	if err := quick.Check(func(s string, n int64, b []byte) bool {
		for _, m := range []proto.Message{wrapperspb.String(strings.ToValidUTF8(s, "")), wrapperspb.Int64(n), wrapperspb.Bytes(b)} {
			name, data, err := c.encode(m)
			if err != nil {
				return false
			}
			if got, err := c.decode(name, data); err != nil || !proto.Equal(m, got) {
				return false
			}
		}
		return true
	}, nil); err != nil {
		t.Error(err)
	}
}
