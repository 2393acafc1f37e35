package dynactortest

import (
	"encoding/json"
	"maps"
)

// object is a JSON object whose members are decoded when needed.
type object map[string]json.RawMessage

// decode reads a JSON object. What is not one reads as empty: the server will
// say so better than we could.
func decode(body []byte) object {
	o := object{}
	if json.Unmarshal(body, &o) != nil {
		return object{}
	}
	return o
}

// get decodes one member into value and says whether it was there.
func (o object) get(name string, value any) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null" && json.Unmarshal(raw, value) == nil
}

// text is a string member, empty when there is none.
func (o object) text(name string) string {
	var s string
	o.get(name, &s)
	return s
}

// clone is a copy whose members may be replaced.
func (o object) clone() object { return maps.Clone(o) }

// appendTo writes o behind what is in buf. The members are taken as they stand.
func (o object) appendTo(buf []byte) []byte {
	buf = append(buf, '{')
	sep := ""
	for name, value := range o {
		buf = append(buf, sep...)
		buf = append(buf, encode(name)...)
		buf = append(buf, ':')
		buf = append(buf, value...)
		sep = ","
	}
	return append(buf, '}')
}

// encode writes what was decoded before or made here, so it cannot fail.
func encode(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		return []byte("{}")
	}
	return body
}
