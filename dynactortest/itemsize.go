package dynactortest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// itemSize is the size of an item by DynamoDB's rules:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemSize(item object) int {
	size := 0
	for name, value := range item {
		size += len(name) + attributeSize(value)
	}
	return size
}

// attributeSize is the size of one attribute value. Plain scalars, nearly all
// there is, are measured as they stand.
func attributeSize(raw json.RawMessage) int {
	const opening, closing = `{"S":"`, `"}`
	if len(raw) >= len(opening)+len(closing) && raw[3] == '"' && raw[5] == '"' && bytes.HasSuffix(raw, []byte(closing)) {
		text := raw[len(opening) : len(raw)-len(closing)]
		if kind := raw[2]; (kind == 'S' || kind == 'N' || kind == 'B') && !bytes.ContainsAny(text, `"\`) {
			return scalarSize(string(kind), string(text))
		}
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return 0
	}
	return valueSize(value)
}

// valueSize is the size of a decoded attribute value: an object with one member
// that is named by its type.
func valueSize(value any) int {
	const container, member = 3, 1
	typed, _ := value.(map[string]any)
	for kind, v := range typed {
		switch kind {
		case "S", "N", "B":
			s, _ := v.(string)
			return scalarSize(kind, s)
		case "SS", "NS", "BS":
			size := 0
			for _, s := range asList(v) {
				text, _ := s.(string)
				size += scalarSize(kind[:1], text)
			}
			return size
		case "L":
			size := container
			for _, element := range asList(v) {
				size += member + valueSize(element)
			}
			return size
		case "M":
			size := container
			members, _ := v.(map[string]any)
			for name, element := range members {
				size += member + len(name) + valueSize(element)
			}
			return size
		}
	}
	return 1 // BOOL and NULL
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func scalarSize(kind, s string) int {
	switch kind {
	case "N":
		return numberSize(s)
	case "B":
		return len(strings.TrimRight(s, "=")) * 3 / 4 // base64
	default:
		return len(s)
	}
}

// numberSize is one byte for every two significant digits, one more, and one
// for a minus sign. DynamoDB calls its own rule approximate.
func numberSize(n string) int {
	size := 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(n), "e")
	whole, fraction, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	digits := strings.Trim(whole+fraction, "0")
	return size + (len(digits)+1)/2
}
