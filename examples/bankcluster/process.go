package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child: this same program in another role. It ends when its standard
// input does, so it does not outlive the driver.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer
	out  *bufio.Reader
	log  *tail
	gone chan struct{} // closed when it has ended
}

// startProcess starts a child in a role.
func startProcess(name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self, args...), log: &tail{}, gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = dieWithParent()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// childVariable is in the environment of children.
const childVariable = "BANKCLUSTER_CHILD"

// watch reads what else the child prints, so that it never waits for a reader, and
// waits for its end.
func (p *process) watch() {
	go func() {
		_, _ = io.Copy(io.Discard, p.out)
		_ = p.cmd.Wait()
		close(p.gone)
	}()
}

// firstLine is the first line that the child prints.
func (p *process) firstLine(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := p.out.ReadString('\n')
		read <- result{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// end kills the child and waits until it is gone.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // also when it is stopped
	select {
	case <-p.gone:
	case <-time.After(5 * time.Second):
	}
}

// ended tells whether the child has ended.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// untilEOF ends a child with its driver.
func untilEOF(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(0)
}

// tail keeps the last of what a child has to complain about.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-4096):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
