//go:build unix && !linux

package main

import "syscall"

// attributes keeps Ctrl-C away from a process: the driver ends it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
