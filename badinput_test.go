package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// calls are all public methods that take a persistence id, called with one.
func calls(ctx context.Context, p *dynactor.Provider, s persistence.ProviderState, id string) map[string]func() error {
	j, store, states := p.Journal(), p.Snapshots(), p.State()
	seam := func(f func()) func() error {
		return func() error {
			if err := caught(f); err != nil {
				return err
			}
			return nil
		}
	}
	return map[string]func() error{
		"Journal.Append":       func() error { _, err := j.Append(ctx, id, 0, text("x")); return err },
		"Journal.AppendEvents": func() error { _, err := j.AppendEvents(ctx, id, 0, dynactor.Event{Message: text("x")}); return err },
		"Journal.Head":         func() error { _, err := j.Head(ctx, id); return err },
		"Journal.Replay":       func() error { _, err := replayed(ctx, j, id, 1, 0); return err },
		"Journal.DeleteTo":     func() error { return j.DeleteTo(ctx, id, 1) },
		"Journal.DeleteAll":    func() error { return j.DeleteAll(ctx, id) },
		"Journal.Erase":        func() error { return j.Erase(ctx, id) },
		"Journal.Sweep":        func() error { _, err := j.Sweep(ctx, id); return err },

		"SnapshotStore.Save":       func() error { return store.Save(ctx, id, 1, text("x")) },
		"SnapshotStore.Latest":     func() error { _, _, err := store.Latest(ctx, id); return err },
		"SnapshotStore.AtOrBefore": func() error { _, _, err := store.AtOrBefore(ctx, id, 1); return err },
		"SnapshotStore.List":       func() error { _, err := store.List(ctx, id); return err },
		"SnapshotStore.Delete":     func() error { return store.Delete(ctx, id, 1) },
		"SnapshotStore.DeleteTo":   func() error { return store.DeleteTo(ctx, id, 1) },

		"StateStore.Load":      func() error { _, err := states.Load(ctx, id); return err },
		"StateStore.LoadMany":  func() error { _, err := states.LoadMany(ctx, id); return err },
		"StateStore.Save":      func() error { _, err := states.Save(ctx, id, 0, text("x")); return err },
		"StateStore.SaveState": func() error { _, err := states.SaveState(ctx, id, 0, dynactor.State{Message: text("x")}); return err },
		"StateStore.SaveWith":  func() error { _, err := states.SaveWith(ctx, id, 0, dynactor.State{Message: text("x")}); return err },
		"StateStore.Delete":    func() error { _, err := states.Delete(ctx, id, 1); return err },
		"StateStore.Purge":     func() error { return states.Purge(ctx, id, 1) },

		"ProviderState.GetSnapshot":     seam(func() { p.GetState().GetSnapshot(id) }),
		"ProviderState.GetEvents":       seam(func() { p.GetState().GetEvents(id, 0, 0, func(any) {}) }),
		"ProviderState.PersistEvent":    seam(func() { s.PersistEvent(id, 0, text("x")) }),
		"ProviderState.DeleteEvents":    seam(func() { s.DeleteEvents(id, 1) }),
		"ProviderState.DeleteSnapshots": seam(func() { s.DeleteSnapshots(id, 1) }),
	}
}

func TestBadInput_IDs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id   string
		want error
		seam bool // only there
	}{
		"E01 empty":                        {"", dynactor.ErrInvalid, false},
		"E03 J-20 too long":                {strings.Repeat("a", 1025), dynactor.ErrInvalid, false},
		"E03 J-20 too long in bytes":       {strings.Repeat("é", 513), dynactor.ErrInvalid, false},
		"E02 not UTF-8":                    {"\xff\xfe", dynactor.ErrInvalid, false},
		"E02 half a surrogate":             {"a\xed\xa0\x80", dynactor.ErrInvalid, false},
		"reserved":                         {"__dynactor__", dynactor.ErrInvalid, false},
		"B13 generated":                    {"$1A", dynactor.ErrUnstableID, true},
		"B13 generated, of a child":        {"parent/$1A", dynactor.ErrUnstableID, true},
		"B13 generated, of a placed grain": {"partition-activator/alice$t", dynactor.ErrUnstableID, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			s := p.GetState()
			for method, call := range calls(t.Context(), p, s, tc.id) {
				if tc.seam != strings.HasPrefix(method, "ProviderState") && tc.seam {
					continue
				}
				err := call()
				if e, ok := errors.AsType[*dynactor.Error](err); !ok || !errors.Is(e, tc.want) || e.ID != tc.id {
					t.Errorf("%s: got %v, want %v", method, err, tc.want)
				}
			}
			s.PersistSnapshot(tc.id, 1, text("x")) // logs, and does not panic
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
		})
	}

	t.Run("B13 a generated id is the journal's caller's business", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		if _, err := p.Journal().Append(t.Context(), "$1A", 0, text("x")); err != nil {
			t.Error(err)
		}
	})

	t.Run("StableID decides in the place of the rule", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{StableID: func(id string) bool { return id == "$1A" }})
		recovered(p.GetState(), "$1A")
		if err := caught(func() { recovered(p.GetState(), "alice") }); !errors.Is(err, dynactor.ErrUnstableID) {
			t.Errorf("got %v, want ErrUnstableID", err)
		}
	})
}

// E02, E03, E14: what looks alike, or odd, is kept apart and goes through a whole life.
func TestBadInput_OddIDs(t *testing.T) {
	t.Parallel()
	ids := []string{
		"a", "A", "а" /* Cyrillic */, "a ", " a", "a\x00", "a\x00b", "a\n", "é", "e\u0301", "ａ", "a/", "a//b", "a/b", "a#b", "a|b", "a%2Fb",
		"$1/$2", "kind/identity", "node@host:8080", "__dynactor__ ", "__DYNACTOR__", "\u2028", "🏦", "..", "'; DROP TABLE", `"`, "#pid", ":id",
		strings.Repeat("é", 512), strings.Repeat("é", 511) + "é"[:0] + "xy",
	}
	p, _ := open(t, dynactor.Options{StableID: func(string) bool { return true }})
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		t.Run(fmt.Sprintf("%.12q", id), func(t *testing.T) {
			t.Parallel()
			s, own := p.GetState(), fmt.Sprint("of ", i)
			recovered(s, id)
			s.PersistEvent(id, 0, text(own+", 1"))
			s.PersistSnapshot(id, 1, text(own+", state"))
			s.PersistEvent(id, 1, text(own+", 2"))
			snapshot, index, events := recovered(p.GetState(), id)
			got := []any{snapshot, index, events}
			if diff := cmp.Diff([]any{own + ", state", 1, []string{own + ", 2"}}, got); diff != "" {
				t.Errorf("recovered (-want +got):\n%s", diff)
			}
			if got, err := replayed(t.Context(), p.Journal(), id, 1, 0); err != nil || len(got) != 2 {
				t.Errorf("replayed %q, %v", got, err)
			}
			if err := p.Journal().DeleteTo(t.Context(), id, 1); err != nil {
				t.Error(err)
			}
			if got, err := replayed(t.Context(), p.Journal(), id, 1, 0); err != nil || len(got) != 1 {
				t.Errorf("replayed %q, %v after a deletion", got, err)
			}
		})
	}
}

// broken is a message that cannot be encoded.
type broken struct{ proto.Message }

// stranger is a message of a type that nobody has registered.
func stranger(t *testing.T) proto.Message {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("stranger.proto"), Package: proto.String("bank.v1"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Stranger")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(file.Messages().Get(0))
}

// J-29, C14: what cannot be encoded, or never decoded again, is refused with nothing stored.
func TestBadInput_Messages(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]proto.Message{
		"nil":          nil,
		"typed nil":    (*wrapperspb.StringValue)(nil),
		"nil inside":   broken{},
		"not UTF-8":    text("\xff"),
		"unregistered": stranger(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			s, ctx := p.GetState(), t.Context()
			recovered(s, "a")
			db.Faults.Reset()
			_, alone := p.Journal().Append(ctx, "a", 0, m)
			_, among := p.Journal().Append(ctx, "a", 0, text("x"), m)
			for what, err := range map[string]error{
				"alone": alone, "among others": among,
				"snapshot": p.Snapshots().Save(ctx, "a", 1, m),
				"persist":  caught(func() { s.PersistEvent("a", 0, m) }),
			} {
				if !errors.Is(err, dynactor.ErrInvalid) || own(err) != 1 {
					t.Errorf("%s: got %v, want ErrInvalid", what, err)
				}
			}
			s.PersistSnapshot("a", 1, m) // logs, and does not panic
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
			s.PersistEvent("a", 0, text("after"))
			if got, err := replayed(ctx, p.Journal(), "a", 1, 0); err != nil || !slices.Equal(got, []string{"after"}) {
				t.Errorf("the actor goes on: stored %q, %v", got, err)
			}
		})
	}

	t.Run("unregistered, but an upcaster knows it", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{Upcasters: []dynactor.Upcaster{func(name string, data []byte) (string, []byte, error) {
			return strings.Replace(name, "bank.v1.Stranger", "google.protobuf.StringValue", 1), data, nil
		}}})
		if _, err := p.Journal().Append(t.Context(), "a", 0, stranger(t)); err != nil {
			t.Fatal(err)
		}
		if got, err := replayed(t.Context(), p.Journal(), "a", 1, 0); err != nil || !slices.Equal(got, []string{""}) {
			t.Errorf("replayed %q, %v", got, err)
		}
	})

	t.Run("L01 known only to the resolver given", func(t *testing.T) {
		t.Parallel()
		m, types := stranger(t), new(protoregistry.Types)
		if err := types.RegisterMessage(dynamicpb.NewMessageType(m.ProtoReflect().Descriptor())); err != nil {
			t.Fatal(err)
		}
		p, _ := open(t, dynactor.Options{Resolver: types})
		s := p.GetState()
		recovered(s, "a")
		s.PersistEvent("a", 0, m)
		s.PersistSnapshot("a", 1, m)
		s.PersistEvent("a", 1, m)
		snapshot, index, ok := p.GetState().GetSnapshot("a")
		if got, is := snapshot.(proto.Message); !ok || !is || index != 1 || !proto.Equal(m, got) {
			t.Errorf("recovered %v, %d, %t", snapshot, index, ok)
		}
		n := 0
		for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
			if err != nil || !proto.Equal(m, e.Message) || e.Type != "bank.v1.Stranger" {
				t.Errorf("replayed %v, %v", e, err)
			}
			n++
		}
		if n != 2 {
			t.Errorf("%d events, want 2", n)
		}
	})

	t.Run("unregistered with the resolver given", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{Resolver: new(protoregistry.Types)})
		if _, err := p.Journal().Append(t.Context(), "a", 0, text("x")); !errors.Is(err, dynactor.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}

func TestBadInput_TagsAndMeta(t *testing.T) {
	t.Parallel()
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, e := range map[string]dynactor.Event{
		"E01 empty tag":       {Tags: []string{"a", ""}},
		"too many tags":       {Tags: many},
		"E02 tag not UTF-8":   {Tags: []string{"\xff"}},
		"empty name":          {Meta: map[string]string{"": "x"}},
		"E02 name not UTF-8":  {Meta: map[string]string{"\xff": "x"}},
		"E02 value not UTF-8": {Meta: map[string]string{"x": "\xff"}},
		"no events":           {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			e.Message = text("x")
			events := []dynactor.Event{{Message: text("first")}, e}
			if name == "no events" {
				events = nil
			}
			if _, err := p.Journal().AppendEvents(t.Context(), "a", 0, events...); !errors.Is(err, dynactor.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
		})
	}

	// E07, E10, J-50: odd ones are values, never names, and come back as they were.
	for name, tc := range map[string]struct{ put, want dynactor.Event }{
		"none":                          {},
		"no tags, no meta, but not nil": {put: dynactor.Event{Tags: []string{}, Meta: map[string]string{}}},
		"most tags":                     {dynactor.Event{Tags: many[:64]}, dynactor.Event{Tags: slices.Sorted(slices.Values(many[:64]))}},
		"the same tag twice": {
			dynactor.Event{Tags: []string{"b", "a", "b"}}, dynactor.Event{Tags: []string{"a", "b"}},
		},
		"odd characters": {
			dynactor.Event{Tags: []string{"\x00", "#", ".", "\"", "\n", "é"}, Meta: map[string]string{"\x00\"\n#.": "\x00", "pid": "", "é": "\u2028"}},
			dynactor.Event{Tags: []string{"\x00", "\n", "\"", "#", ".", "é"}, Meta: map[string]string{"\x00\"\n#.": "\x00", "pid": "", "é": "\u2028"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{})
			tc.put.Message = text("x")
			given := slices.Clone(tc.put.Tags)
			if _, err := p.Journal().AppendEvents(t.Context(), "a", 0, tc.put); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(given, tc.put.Tags); diff != "" {
				t.Errorf("the caller's tags were changed (-before +after):\n%s", diff)
			}
			for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got := dynactor.Event{Tags: slices.Sorted(slices.Values(e.Tags)), Meta: e.Meta}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("tags and metadata (-want +got):\n%s", diff)
				}
			}
		})
	}
}
