package dynactortest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

// echo answers with what the server got.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	if got := r.Header.Get("X-Amz-Content-Sha256"); got != "" && got != hex.EncodeToString(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(body)
}

func post(t *testing.T, faults *dynactortest.Faults, url, op, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	return (&http.Client{Transport: faults}).Do(req)
}

func TestFaultsPassWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	for _, body := range []string{"", "not JSON", `{"TableName":5}`, `{"Items":null}`} {
		faults := dynactortest.NewFaults(nil)
		faults.ReportCapacity(true)
		resp, err := post(t, faults, server.URL, "NoSuchOperation", body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		faults.CloseIdleConnections()
		if diff := cmp.Diff(body, string(got)); diff != "" || resp.StatusCode != http.StatusOK {
			t.Errorf("status %d, body (-want +got):\n%s", resp.StatusCode, diff)
		}
		record := faults.Requests()[0]
		if diff := cmp.Diff(body, string(record.Body)); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
		if record.Input() != nil && !strings.HasPrefix(body, "{") {
			t.Errorf("%q decodes to %v", body, record.Input())
		}
	}
}

func TestAChangedBodyHasItsOwnLengthAndSum(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	faults := dynactortest.NewFaults(&http.Transport{})
	faults.ReportCapacity(true)
	resp, err := post(t, faults, server.URL, "PutItem", `{"TableName":"a"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer faults.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ReturnConsumedCapacity":"TOTAL","TableName":"a"}`
	if diff := cmp.Diff(want, string(got)); diff != "" || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, body (-want +got):\n%s", resp.StatusCode, diff)
	}
	if diff := cmp.Diff(`{"TableName":"a"}`, string(faults.Requests()[0].Body)); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestTheTransportsErrorsPass(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echo))
	server.Close()
	actions := map[string]dynactortest.Action{
		"none":       {},
		"DropAnswer": dynactortest.DropAnswer(),
		"FailAfter":  dynactortest.FailAfter(500),
		"Delay":      dynactortest.Delay(0, 0),
		"HoldAnswer": dynactortest.HoldAnswer(nil, nil),
		"FlipByte":   dynactortest.FlipByte(),
		"EmptyPage":  dynactortest.EmptyPage(),
	}
	for name, do := range actions {
		faults := dynactortest.NewFaults(&http.Transport{})
		faults.Add(dynactortest.Rule{Do: do})
		resp, err := post(t, faults, server.URL, "Query", "{}")
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %v, want a refused connection", name, err)
		}
		want := dynactortest.Usage{}
		if diff := cmp.Diff(want, faults.Usage()); diff != "" {
			t.Errorf("%s: usage (-want +got):\n%s", name, diff)
		}
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (brokenBody) Close() error             { return nil }

func TestABodyThatCannotBeReadIsTheCallersError(t *testing.T) {
	t.Parallel()
	faults := dynactortest.NewFaults(answering{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1", brokenBody{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := faults.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
