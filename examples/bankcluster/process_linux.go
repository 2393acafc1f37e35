package main

import "syscall"

// dieWithParent has the kernel end a child whose driver was killed, even one that is
// stopped and cannot see the end of its input.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
