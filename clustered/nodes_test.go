package clustered_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/dynactortest"
)

// nodeVariable tells the test binary that it is a node, and which: endpoint, tables,
// its own port, and those of all.
const nodeVariable = "DYNACTOR_CLUSTERED_TEST_NODE"

// TestTwoNodes has one process ask for virtual actors of another.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	if err := newProvider(t, db).EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	hosts := freeHosts(t, 2)
	asker := startNode(t, db, hosts, 0)
	startNode(t, db, hosts, 1)
	for deadline := time.Now().Add(longest); ; {
		if got := asker(t, "members"); got == "2" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the nodes do not find each other")
		}
		time.Sleep(10 * time.Millisecond)
	}
	// An actor whose home is the other node.
	home := strings.Fields(asker(t, "address"))[0]
	identity := ""
	for i := 0; identity == ""; i++ {
		candidate := "a" + strconv.Itoa(i)
		where := strings.Fields(asker(t, "say "+candidate+" "+owner))
		if len(where) != 2 || where[1] != "account/"+candidate {
			t.Fatalf("%s is at %v", candidate, where)
		}
		if where[0] != home {
			identity = candidate
		}
	}
	expect := func(command, want string) {
		t.Helper()
		if got := asker(t, command); got != want {
			t.Fatalf("%s: answered %q, want %q", command, got, want)
		}
	}
	expect("add "+identity+" 5", "5")
	expect("say "+identity+" "+deny, deny)
	began := time.Now()
	expect("add "+identity+" 6", "grain error failed")
	if took := time.Since(began); took > longest/4 {
		t.Errorf("answered after %s", took)
	}
	expect("add "+identity+" 6", "11")
	expect("say "+identity+" "+passivate, passivate)
	for began := time.Now(); ; { // what is sent behind the poison pill is lost
		got := asker(t, "say "+identity+" "+balance)
		if got == "11" {
			break
		}
		if !strings.HasPrefix(got, "error") || time.Since(began) > longest {
			t.Fatalf("after passivation: %q", got)
		}
	}
}

// startNode starts a process and returns how to ask it something, a line for a line.
func startNode(t *testing.T, db *dynactortest.DB, hosts []string, n int) func(*testing.T, string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe) //nolint:noctx // it ends when its standard input does, which is gentler
	cmd.Env = append(os.Environ(), nodeVariable+"="+strings.Join(append([]string{db.Endpoint, db.EventsTable, db.SnapshotsTable, strconv.Itoa(n)}, hosts...), ","))
	// The framework's own nodes race with their topology; what matters is ours.
	cmd.Env = append(cmd.Env, "GORACE=exitcode=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("node %d: %v\n%s", n, err, &errs)
		}
		for _, ours := range []string{"github.com/dynactor/dynactor.", "github.com/dynactor/dynactor/clustered."} {
			if strings.Contains(errs.String(), ours) {
				t.Errorf("node %d:\n%s", n, &errs)
			}
		}
	})
	lines := bufio.NewScanner(out)
	return func(t *testing.T, command string) string {
		t.Helper()
		if _, err := fmt.Fprintln(in, command); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // the framework prints lines of its own
			if answer, ok := strings.CutPrefix(lines.Text(), "= "); ok {
				return answer
			}
		}
		t.Fatalf("node %d has ended: %v", n, lines.Err())
		return ""
	}
}

// freeHosts are addresses that nobody listens on.
func freeHosts(t *testing.T, n int) []string {
	t.Helper()
	var hosts []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // nothing was written
		hosts = append(hosts, l.Addr().String())
	}
	return hosts
}

// runNode is the other process. It ends when its standard input does.
func runNode() error {
	args := strings.Split(os.Getenv(nodeVariable), ",")
	endpoint, tables, hosts := args[0], args[1:3], args[4:]
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(hosts[n])
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	faults := dynactortest.NewFaults(http.DefaultTransport)
	cfg := dynactortest.Config(endpoint)
	cfg.HTTPClient = &http.Client{Transport: faults}
	p, err := dynactor.New(dynamodb.NewFromConfig(cfg), options(tables[0], tables[1]))
	if err != nil {
		return err
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &account{faults: faults} },
		actor.WithReceiverMiddleware(clustered.Using(p, dynactor.UsingOptions{})))
	c := cluster.New(quietSystem(), cluster.Configure("two",
		automanaged.NewWithConfig(100*time.Millisecond, number, hosts...), disthash.New(), remote.Configure("127.0.0.1", 0),
		cluster.WithKinds(cluster.NewKind("account", props)), cluster.WithRequestTimeout(10*time.Second)))
	c.StartMember()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Printf("= %s\n", answer(c, strings.SplitN(lines.Text(), " ", 3)))
	}
	return errors.Join(lines.Err(), p.Close(context.Background()))
}

// answer carries out a command.
func answer(c *cluster.Cluster, command []string) string {
	var m proto.Message
	switch command[0] {
	case "members":
		return strconv.Itoa(c.MemberList.Length())
	case "address":
		return c.ActorSystem.Address()
	case "add":
		n, _ := strconv.ParseInt(command[2], 10, 64)
		m = wrapperspb.Int64(n)
	case "say":
		m = wrapperspb.String(command[2])
	}
	got, err := c.Request(command[1], "account", m, cluster.WithRetryCount(1))
	switch got := got.(type) {
	case *wrapperspb.Int64Value:
		return strconv.FormatInt(got.GetValue(), 10)
	case *wrapperspb.StringValue:
		return got.GetValue()
	case *cluster.GrainErrorResponse:
		return "grain error " + got.GetReason()
	}
	return fmt.Sprintf("error %v %v", got, err)
}
