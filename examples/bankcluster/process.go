package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTime   = 30 * time.Second // within which a process must be ready
	keptLog     = 15               // lines
	waitForPipe = time.Second
)

// childVariable is in the environment of the processes that this one starts.
const childVariable = "BANKCLUSTER_CHILD"

// process is this program in another role. It ends with this one: its standard
// input is a pipe that closes then, and on Linux it gets a signal as well, which
// ends it even while it is stopped.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   *log
	ready chan string   // the report
	ended chan struct{} // closed when the process is gone and waited for
	err   error         // of Wait, after that
}

// startProcess starts a process, gives it its configuration, and reads its report.
// What it prints goes to verbose, too, unless that is nil.
func startProcess(ctx context.Context, name, role string, config, report any, verbose io.Writer) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{name: name, ready: make(chan string, 1), ended: make(chan struct{})}
	p.log = &log{name: name, verbose: verbose, ready: p.ready}
	p.cmd = exec.Command(self, role)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log // one writer, so no two calls at a time
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.SysProcAttr, p.cmd.WaitDelay = attributes(), waitForPipe
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.begin(ctx, stdin, config, report); err != nil {
		p.end()
		return nil, fmt.Errorf("start %s: %w%s", name, err, p.log)
	}
	return p, nil
}

func (p *process) begin(ctx context.Context, stdin io.Writer, config, report any) error {
	if err := json.NewEncoder(stdin).Encode(config); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it is not ready after %s", startTime))
	defer cancel()
	select {
	case line := <-p.ready:
		return json.Unmarshal([]byte(line), report)
	case <-p.ended:
		return fmt.Errorf("it has ended: %w", errors.Join(p.err, errEnded))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errEnded = errors.New("no such process any more")

// signal sends a signal.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s to %s: %w", s, p.name, err)
	}
	return nil
}

// end kills the process, and returns when it is gone. It may be gone already.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.stdin.Close()
}

// log takes the output of a process: it finds the report and keeps the last lines.
type log struct {
	name    string
	verbose io.Writer
	ready   chan<- string

	mu      sync.Mutex
	partial []byte
	last    []string
}

// Write implements [io.Writer].
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.line(string(line))
		l.partial = rest
	}
}

func (l *log) line(line string) {
	if report, found := strings.CutPrefix(line, readyMark); found {
		select {
		case l.ready <- report:
		default: // it has reported before
		}
		return
	}
	if l.verbose != nil {
		say(l.verbose, "%s: %s\n", l.name, line)
	}
	if l.last = append(l.last, line); len(l.last) > keptLog {
		l.last = l.last[1:]
	}
}

// String is the last lines, for an error.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == 0 {
		return ""
	}
	return "\n  " + l.name + ": " + strings.Join(l.last, "\n  "+l.name+": ")
}
