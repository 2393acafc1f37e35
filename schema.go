package dynactor

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// keySchema is the primary key of a table.
func (l *layout) keySchema(t table) []types.KeySchemaElement {
	keys := []types.KeySchemaElement{
		{AttributeName: &l.attr.ID, KeyType: types.KeyTypeHash},
		{AttributeName: &l.attr.Seq, KeyType: types.KeyTypeRange},
	}
	if !t.sorted {
		return keys[:1]
	}
	return keys
}

// keyTypes declares the attributes of the primary key.
func (l *layout) keyTypes(t table) []types.AttributeDefinition {
	defs := []types.AttributeDefinition{
		{AttributeName: &l.attr.ID, AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: &l.attr.Seq, AttributeType: types.ScalarAttributeTypeN},
	}
	if !t.sorted {
		return defs[:1]
	}
	return defs
}

// tableKey is the primary key of the item in which a table describes itself.
func (l *layout) tableKey(t table) item {
	if !t.sorted {
		return l.stateKey(tableID)
	}
	return l.key(tableID, 0)
}

// tableItem is the item in which a table describes itself.
func (l *layout) tableItem(t table) item {
	it := l.tableKey(t)
	it[l.attr.Format] = number(format)
	it[l.attr.Layout] = &types.AttributeValueMemberS{Value: layoutName}
	return it
}

// checkTableItem refuses a table of another format or layout.
func (l *layout) checkTableItem(table string, it item) error {
	f := fields{l: l, it: it}
	version, name := f.number(l.attr.Format), f.text(l.attr.Layout)
	switch {
	case f.err != nil:
		return fmt.Errorf("table %q: its own item: %w", table, f.err)
	case version != format:
		return fmt.Errorf("table %q has format %d, this version knows %d", table, version, format)
	case name != layoutName:
		return fmt.Errorf("table %q has layout %q, expected %q", table, name, layoutName)
	}
	return nil
}

// shape names what is wrong with a table's keys and replicas. A table that could
// not be described has none of them, and nothing is said about it.
func (t *tables) shape(needs table, d *types.TableDescription) []error {
	if len(d.KeySchema) == 0 {
		return nil
	}
	name := needs.name
	var errs []error
	if got, want := describeKeys(d.KeySchema, d.AttributeDefinitions), describeKeys(t.layout.keySchema(needs), t.layout.keyTypes(needs)); got != want {
		errs = append(errs, fmt.Errorf("table %q has the key %s, expected %s", name, got, want))
	}
	home := regionOf(aws.ToString(d.TableArn))
	var elsewhere []string
	for _, r := range d.Replicas {
		if region := aws.ToString(r.RegionName); region != home {
			elsewhere = append(elsewhere, region)
		}
	}
	switch {
	case len(elsewhere) == 0:
	case t.o.HomeRegion == "":
		errs = append(errs, fmt.Errorf("table %q has replicas in %s, where writers would overwrite each other: name the only region that writes in HomeRegion",
			name, strings.Join(elsewhere, ", ")))
	case t.o.HomeRegion != home:
		errs = append(errs, fmt.Errorf("table %q is in region %s, but only %s may write", name, home, t.o.HomeRegion))
	}
	return errs
}

// describeKeys shows a primary key, in the order partition key, sort key.
func describeKeys(keys []types.KeySchemaElement, defs []types.AttributeDefinition) string {
	kind := map[string]types.ScalarAttributeType{}
	for _, d := range defs {
		kind[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	parts := make([]string, 0, len(keys))
	for _, want := range []types.KeyType{types.KeyTypeHash, types.KeyTypeRange} {
		for _, k := range keys {
			if k.KeyType == want {
				name := aws.ToString(k.AttributeName)
				parts = append(parts, fmt.Sprintf("%s %s (%s)", want, name, kind[name]))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// regionOf is the region in an ARN.
func regionOf(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 3 {
		return parts[3]
	}
	return ""
}

// verify names all that is wrong with the tables, and changes nothing. With
// existing, tables that do not exist are passed over.
func (t *tables) verify(ctx context.Context, existing bool) ([]error, error) {
	var errs []error
	for _, needs := range t.group {
		problems, err := t.verifyTable(ctx, needs, existing)
		if err != nil {
			return nil, err
		}
		errs = append(errs, problems...)
	}
	return errs, nil
}

func (t *tables) verifyTable(ctx context.Context, needs table, existing bool) ([]error, error) {
	d, err := t.describe(ctx, needs.name)
	if err != nil {
		return nil, err
	}
	if d == nil {
		if existing {
			return nil, nil
		}
		return []error{fmt.Errorf("table %q does not exist", needs.name)}, nil
	}
	problems := t.shape(needs, d)
	if !usable(d.TableStatus) {
		return append(problems, fmt.Errorf("table %q is %s", needs.name, d.TableStatus)), nil
	}
	if len(problems) == 0 { // with another key there is no such item
		it, err := t.readItem(ctx, needs)
		if err != nil {
			return nil, err
		}
		if it != nil { // none: never used so far
			if err := t.layout.checkTableItem(needs.name, it); err != nil {
				problems = append(problems, err)
			}
		}
	}
	if needs.expires {
		on, err := t.expires(ctx, needs.name)
		if err != nil {
			return nil, err
		}
		if !on {
			problems = append(problems, fmt.Errorf("table %q does not expire items by attribute %q", needs.name, t.layout.attr.Expires))
		}
	}
	return problems, nil
}
