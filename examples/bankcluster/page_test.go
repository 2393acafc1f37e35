package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browser starts a real one. Where there is none, the test is skipped, but not in CI.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no chromium")
		}
		t.Skip("there is no chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1100, 1000))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// shown waits until an expression of the page has a value.
func shown(ctx context.Context, t *testing.T, expression, want string) {
	t.Helper()
	test, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool]("("+expression+") === "+string(test))); err != nil {
		got, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
		t.Fatalf("%s is %q, want %q: %v", expression, got, want, err)
	}
}

// TestPage opens the status page in a browser while things happen.
func TestPage(t *testing.T) { //nolint:paralleltest // its browser needs the machine
	ctx := browser(t)
	p := &play{out: io.Discard, cast: &cast{}, teller: newTeller(), began: time.Now(), flags: flags{page: "127.0.0.1:0"}}
	p.accounts("a01")
	p.accounts("<b>a02</b>")
	for i, state := range []string{"alive", "killed", "split off"} {
		n := &node{process: &process{name: fmt.Sprintf("node %d", i+1)}, state: state}
		p.cast.nodes = append(p.cast.nodes, n)
	}
	p.load.acked = []transaction{{id: "1", to: "a01", amount: 1234_50}}
	p.becomes("load")
	p.tell("something has happened")
	served, err := p.serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer served.close()

	if _, err := chromedp.Run(ctx, chromedp.Navigate(served.url)); err != nil {
		t.Fatal(err)
	}
	shown(ctx, t, `document.body.dataset.live`, "yes")
	shown(ctx, t, `document.getElementById("acknowledged").textContent`, "1")
	shown(ctx, t, `[...document.querySelectorAll(".node")].map(n => n.className + ": " + n.querySelector(".state").textContent).join()`,
		"node alive: alive,node killed: killed,node split: split off")
	balances := `[...document.querySelectorAll(".account")].map(a => a.children[0].textContent + " " + a.children[2].textContent).join("; ")`
	shown(ctx, t, balances, "a01 1,234.50; <b>a02</b> 0.00")
	shown(ctx, t, `String(document.getElementById("news").textContent.includes("something has happened"))`, "true")

	p.load.mu.Lock()
	p.load.acked = append(p.load.acked, transaction{id: "2", from: "a01", to: "<b>a02</b>", amount: 34_50})
	p.load.mu.Unlock()
	p.cast.nodes[0].becomes("stopped")
	shown(ctx, t, balances, "a01 1,200.00; <b>a02</b> 34.50")
	shown(ctx, t, `document.querySelector(".node .state").textContent`, "stopped")
	shown(ctx, t, `String(document.querySelector("#chart polyline").getAttribute("points").split(" ").length > 2)`, "true")

	served.close()
	shown(ctx, t, `document.getElementById("phase").textContent`, "The demonstration has ended.")
}

// TestPicture takes the picture in the README, from a real run.
func TestPicture(t *testing.T) { //nolint:paralleltest // it needs the machine
	path := os.Getenv("BANKCLUSTER_PICTURE")
	if path == "" {
		t.Skip("BANKCLUSTER_PICTURE names no file for a new picture")
	}
	ctx := browser(t)
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	page := fmt.Sprintf("127.0.0.1:%d", ports[0])
	done := make(chan int, 1)
	go func() { done <- run(t.Context(), []string{"-page", page}, io.Discard, os.Stderr) }()
	time.Sleep(2 * time.Second)
	if _, err := chromedp.Run(ctx, chromedp.Navigate("http://"+page+"/")); err != nil {
		t.Fatal(err)
	}
	shown(ctx, t, `String(document.getElementById("news").textContent.includes("node 4 joins"))`, "true")
	time.Sleep(2 * time.Second)
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.HasSuffix(path, ".png") {
		t.Error("the picture is a PNG")
	}
}
