package dynactor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// What each path costs, counted at the wire.
func TestDocs_Costs(t *testing.T) {
	t.Parallel()
	type usage = dynactortest.Usage
	minus := func(a, b usage) usage {
		return usage{Requests: a.Requests - b.Requests, WriteUnits: a.WriteUnits - b.WriteUnits, ReadUnits: a.ReadUnits - b.ReadUnits}
	}
	// cost is what act uses, of an actor that has recovered.
	cost := func(o dynactor.Options, events int, before, act func(*dynactor.Provider, persister)) usage {
		p, db := open(t, o)
		ready(t, p, db)
		s := p.GetState()
		recovered(s, "a")
		for i := range events {
			s.PersistEvent("a", i, text("x"))
		}
		if before != nil {
			before(p, s)
		}
		db.Faults.Reset()
		act(p, s)
		return db.Faults.Usage()
	}
	snapshot := func(index int) func(*dynactor.Provider, persister) {
		return func(_ *dynactor.Provider, s persister) { s.PersistSnapshot("a", index, text("state")) }
	}
	recovery := func(p *dynactor.Provider, _ persister) { recovered(p.GetState(), "a") }
	appending := func(n int) func(*dynactor.Provider, persister) {
		return func(p *dynactor.Provider, _ persister) { fill(t, p.Journal(), "b", n) }
	}
	before := func(p *dynactor.Provider, _ persister) {
		if _, err := p.State().Save(t.Context(), "a", 0, text("x")); err != nil {
			t.Error(err)
		}
	}
	now := &clock{}
	one, deleting := dynactor.Options{KeepSnapshots: 1}, dynactor.Options{KeepSnapshots: 1, DeleteEventsOnSnapshot: true}
	old := deleting
	old.Now = now.Now
	want := map[string]usage{
		"persist one event": cost(dynactor.Options{}, 1, nil,
			func(_ *dynactor.Provider, s persister) { s.PersistEvent("a", 1, text("x")) }),
		"recovery with `SnapshotInterval` set, snapshot and newest events in one page": cost(dynactor.Options{SnapshotInterval: 2}, 3, snapshot(2), recovery),
		"recovery without `SnapshotInterval`, all events in one page":                  cost(dynactor.Options{}, 3, nil, recovery),
		"save a snapshot, no older one to delete yet":                                  cost(dynactor.Options{}, 3, snapshot(1), snapshot(2)),
		"save a snapshot and delete an older one":                                      cost(one, 3, snapshot(1), snapshot(2)),
		"the same with `DeleteEventsOnSnapshot`, no item old enough":                   cost(deleting, 3, snapshot(2), snapshot(3)),
		"the same, 25 items old enough": cost(old, 26, func(p *dynactor.Provider, s persister) {
			snapshot(1)(p, s)
			now.Advance(dynactor.DefaultDeleteDelay + time.Minute)
		}, snapshot(26)),
		"first save of an incarnation, in addition": minus(cost(dynactor.Options{}, 2, nil, snapshot(2)), usage{Requests: 1, WriteUnits: 1}),
		"`Journal.Append` of one event":             cost(dynactor.Options{}, 0, nil, appending(1)),
		"`Journal.Append` of ten events":            cost(dynactor.Options{}, 0, nil, appending(10)),
		"save or delete a durable state": cost(dynactor.Options{}, 0, before, func(p *dynactor.Provider, _ persister) {
			if _, err := p.State().Save(t.Context(), "a", 1, text("y")); err != nil {
				t.Error(err)
			}
		}),
		"load a durable state": cost(dynactor.Options{}, 0, before, func(p *dynactor.Provider, _ persister) {
			if _, err := p.State().Load(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}),
		"`Journal.Head`": cost(dynactor.Options{}, 3, nil, func(p *dynactor.Provider, _ persister) {
			if _, err := p.Journal().Head(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}),
	}
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	if err := openOn(t, db, db.Client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
		t.Error(err)
	}
	want["check of the tables, once for each provider"] = db.Faults.Usage()
	got := map[string]usage{}
	for _, row := range tableRows(t, "README.md", "path", "requests") {
		var u usage
		if _, err := fmt.Sscan(strings.Join(row[1:], " "), &u.Requests, &u.WriteUnits, &u.ReadUnits); err != nil {
			t.Errorf("%v: %v", row, err)
		}
		got[row[0]] = u
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-measured +README):\n%s", diff)
	}
}

// persister is what the framework sees of a session, as far as costs go.
type persister interface {
	PersistEvent(name string, index int, event proto.Message)
	PersistSnapshot(name string, index int, snapshot proto.Message)
}

// The policies allow what is used, and nothing else.
func TestDocs_Policies(t *testing.T) {
	t.Parallel()
	var got []map[string][]string // of each policy: the actions on each table
	for _, block := range codeBlocks(readDoc(t, "docs/operations.md"), "json") {
		var policy struct {
			Version   string
			Statement []struct {
				Sid, Effect, Resource string
				Action                []string
			}
		}
		d := json.NewDecoder(strings.NewReader(block))
		d.DisallowUnknownFields()
		if err := d.Decode(&policy); err != nil {
			t.Fatal(err)
		}
		allowed := map[string][]string{}
		for _, s := range policy.Statement {
			_, table, _ := strings.Cut(s.Resource, ":table/")
			if allowed[table] = append(allowed[table], s.Action...); policy.Version != "2012-10-17" || s.Effect != "Allow" || s.Sid == "" {
				t.Errorf("version %q, statement %+v", policy.Version, s)
			}
		}
		for _, actions := range allowed {
			slices.Sort(actions)
		}
		got = append(got, allowed)
	}
	now := &clock{}
	p, db := open(t, dynactor.Options{Now: now.Now})
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.State().EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	creation := actionsUsed(db)
	db.Faults.Reset()
	p = openOn(t, db, db.Client, dynactor.Options{NoCreateTables: true, KeepSnapshots: 1, Now: now.Now})
	s := p.GetState()
	recovered(s, "a")
	for i := range 3 {
		s.PersistEvent("a", i, text("x"))
		s.PersistSnapshot("a", i+1, text("state"))
	}
	_, err := p.Journal().Append(t.Context(), "a", 3, numbered(4, 5)...)
	now.Advance(dynactor.DefaultDeleteDelay + time.Minute)
	s.DeleteEvents("a", 1)
	states := p.State()
	_, errSave := states.SaveWith(t.Context(), "a", 0, dynactor.State{Message: text("x")}, ownPut(db.SnapshotsTable, "b", ""))
	_, errLoad := states.LoadMany(t.Context(), "a")
	_, errDelete := states.Delete(t.Context(), "a", 1)
	now.Advance(dynactor.DefaultStateRetention + time.Minute)
	for row, err := range states.IDs(t.Context(), "") {
		if row.ID != "a" || err != nil {
			t.Error(row, err)
		}
	}
	if err := errors.Join(err, errSave, errLoad, errDelete, states.Purge(t.Context(), "a", 2), p.Journal().Erase(t.Context(), "a"), p.Snapshots().DeleteTo(t.Context(), "a", math.MaxInt64),
		p.VerifyTables(t.Context())); err != nil {
		t.Error(err)
	}
	use := actionsUsed(db)
	both := map[string][]string{}
	for table := range use {
		// The table's own item is written at its first use, whoever made the table.
		use[table] = append(use[table], "dynamodb:PutItem")
		slices.Sort(use[table])
		use[table] = slices.Compact(use[table])
		both[table] = slices.Concat(use[table], creation[table])
		slices.Sort(both[table])
		both[table] = slices.Compact(both[table])
	}
	if diff := cmp.Diff([]map[string][]string{use, both}, got); diff != "" {
		t.Errorf("(-used +allowed):\n%s", diff)
	}
}

// actionsUsed are the actions on each table, by its default name.
func actionsUsed(db *dynactortest.DB) map[string][]string {
	used := map[string][]string{}
	for _, r := range db.Faults.Requests() {
		table := map[string]string{db.EventsTable: dynactor.DefaultEventsTable, db.SnapshotsTable: dynactor.DefaultSnapshotsTable, db.StateTable: dynactor.DefaultStateTable}[r.Table]
		used[table] = append(used[table], "dynamodb:"+strings.Replace(r.Op, "TransactWriteItems", "PutItem", 1))
	}
	for table, actions := range used {
		slices.Sort(actions)
		used[table] = slices.Compact(actions)
	}
	return used
}
