package main

import "syscall"

// attributes makes the kernel end a process when its driver is killed, even while it
// is stopped. It also keeps Ctrl-C away from it: the driver ends it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
