package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

var picture = flag.String("picture", "", "run at full length, and save a picture of the status page in this `file`")

// tab is a page in a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// newTab starts a browser. Where there is none, the test is skipped, but not in CI.
func newTab(t *testing.T) tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("the page needs a browser: install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1100, 1000))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return tab{t, ctx}
}

func (b tab) open(url string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Navigate(url)); err != nil {
		b.t.Fatal(err)
	}
}

// shows waits until an expression has a value.
func (b tab) shows(expression string, want any) {
	b.t.Helper()
	value, err := json.Marshal(want)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("("+expression+") === "+string(value))); err != nil {
		got, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
		b.t.Fatalf("%s is %s, want %s: %v", expression, got, value, err)
	}
}

// The page shows nodes, figures, balances and news, and follows them.
func TestPage(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	p := &play{flags: flags{page: "127.0.0.1:0"}, out: io.Discard, fleet: &fleet{}, began: time.Now()}
	p.client = newClient(p.fleet)
	p.load = &load{client: p.client, accounts: []string{"a01", "<b>a02</b>"}}
	for i, s := range []state{alive, killed, split, waiting} {
		p.fleet.members = append(p.fleet.members, &member{name: []string{"one", "two", "three", "four"}[i], state: s})
	}
	decided := func(tx transaction, answers ...proto.Message) {
		p.load.mu.Lock()
		defer p.load.mu.Unlock()
		p.load.decided = append(p.load.decided, decision{tx, answers})
	}
	decided(transaction{"1", "", "a01", 1234_50}, &bankpb.Receipt{})
	p.becomes("load")
	p.tell("something has happened")
	served, err := p.serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer served.close()

	b.open(served.url)
	b.shows(`document.body.dataset.live`, "yes")
	b.shows(`document.getElementById("acknowledged").textContent`, "1")
	b.shows(`[...document.querySelectorAll(".node")].map(n => n.className + ": " + n.querySelector(".state").textContent).join()`,
		"node alive: alive,node killed: killed,node split: split off,node waiting: waiting")
	balances := `[...document.querySelectorAll(".account")].map(a => a.children[0].textContent + " " + a.children[2].textContent).join("; ")`
	b.shows(balances, "a01 1,234.50; <b>a02</b> 0.00")
	b.shows(`document.getElementById("news").textContent.includes("something has happened")`, true)

	decided(transaction{"2", "a01", "<b>a02</b>", 34_50}, &bankpb.Receipt{}, &bankpb.Receipt{})
	decided(transaction{"3", "a01", "", 1}, &bankpb.Refusal{})
	p.load.refused.Add(1)
	p.fleet.members[0].set(stopped)
	p.fleet.members[0].conflicts.Add(7)
	p.client.repeats.Add(1000)
	b.shows(balances, "a01 1,200.00; <b>a02</b> 34.50")
	b.shows(`document.querySelector(".node .state").textContent`, "stopped")
	b.shows(`["acknowledged", "repeated", "conflicts"].map(id => document.getElementById(id).textContent).join()`, "2,1,000,7")
	b.shows(`document.querySelector("#chart polyline").getAttribute("points").split(" ").length > 2`, true)
	b.shows(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`, true)

	served.close()
	b.shows(`document.getElementById("phase").textContent`, "The demonstration has ended.")
}

// In a real run the page shows what happens when it happens.
func TestPageOfAPlay(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	args := quick(t)
	if *picture != "" {
		args = append(args, "-pace", "5s", "-accounts", "24", "-concurrency", "16")
	}
	out := newConsole()
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), args, nil, out, out) }()
	b.open(out.await(t.Context(), t, `status page at (http://\S+)\n`))

	nodes := func(class string) string { return `document.querySelectorAll(".node.` + class + `").length` }
	figure := func(id string) string {
		return `Number(document.getElementById("` + id + `").textContent.replaceAll(",", ""))`
	}
	b.shows(nodes("alive")+` === 3 && `+nodes("waiting")+` === 1`, true)
	b.shows(figure("acknowledged")+` > 0 && `+figure("rate")+` > 0`, true)
	b.shows(nodes("killed"), 1)
	b.shows(nodes("stopped"), 1)
	b.shows(nodes("split")+` === 1 && `+figure("conflicts")+` > 0`, true)
	b.shows(nodes("alive")+` === 2 && `+nodes("waiting")+` === 0`, true)
	b.shows(`[...document.querySelectorAll(".account i")].every(bar => bar.clientWidth > 0)`, true)
	b.shows(`document.getElementById("news").textContent.includes("node 4 joins")`, true)
	if *picture != "" {
		b.shows(`document.getElementById("news").textContent.split("node 4 joins")[1].includes("acknowledged")`, true)
		shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*picture, shot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code := <-ended; code != 0 || !strings.Contains(out.String(), "total money unchanged") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	b.shows(`document.body.dataset.live`, "no")
}
