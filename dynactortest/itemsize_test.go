package dynactortest

import "testing"

func TestItemSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		item string
		want int
	}{
		{`{}`, 0},
		{`{"a":{"S":""}}`, 1},
		{`{"a":{"S":"bc"}}`, 3},
		{`{"ä":{"S":"ö"}}`, 4},
		{`{"a":{"S":"\u00f6\n\"\\"}}`, 1 + 5},
		{`{"a":{"S":"<\u003e"}}`, 3},
		{`{"a":{"B":""}}`, 1},
		{`{"a":{"B":"AA=="}}`, 2},
		{`{"a":{"B":"AAA="}}`, 3},
		{`{"a":{"B":"AAAA"}}`, 4},
		{`{"a":{"N":"0"}}`, 2},
		{`{"a":{"N":"1"}}`, 3},
		{`{"a":{"N":"12"}}`, 3},
		{`{"a":{"N":"123"}}`, 4},
		{`{"a":{"N":"-123"}}`, 5},
		{`{"a":{"N":"12000"}}`, 3},
		{`{"a":{"N":"0.0012"}}`, 3},
		{`{"a":{"N":"1.2e10"}}`, 3},
		{`{"a":{"BOOL":true}}`, 2},
		{`{"a":{"NULL":true}}`, 2},
		{`{"a":{"SS":["bc","d"]}}`, 4},
		{`{"a":{"NS":["1","123"]}}`, 6},
		{`{"a":{"BS":["AA==","AAAA"]}}`, 5},
		{`{"a":{"L":[]}}`, 4},
		{`{"a":{"L":[{"S":"bc"},{"BOOL":false}]}}`, 1 + 3 + 1 + 2 + 1 + 1},
		{`{"a":{"M":{}}}`, 4},
		{`{"a":{"M":{"bc":{"S":"d"}}}}`, 1 + 3 + 1 + 2 + 1},
		{`{ "a" : { "S" : "bc" } , "d" : {"S": "e"} }`, 5},
	}
	for _, tt := range tests {
		if got := itemSize(decode([]byte(tt.item))); got != tt.want {
			t.Errorf("%s counts %d bytes, want %d", tt.item, got, tt.want)
		}
	}
}
