package dynactor

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// What tests in package dynactor_test need of the inside. Tests in package
// dynactor cannot use dynactortest, which imports dynactor.

// What is checked before anything is sent.
var (
	ItemSize  = itemSize
	CheckSize = checkSize
	CheckID   = checkID
	CheckTags = checkTags
	CheckMeta = checkMeta
)

// MaxItemBytes is DynamoDB's limit.
const MaxItemBytes = maxItemBytes

// StoredEvent is an event as it is stored.
func StoredEvent(id string, seq, last, ts int64, name, op string, data []byte, tags []string, meta map[string]string) map[string]types.AttributeValue {
	l := newLayout("e", "s", AttributeNames{}.withDefaults())
	return l.eventItem(id, record{seq: seq, last: last, ts: ts, name: name, op: op, data: data, tags: tags, meta: meta})
}
