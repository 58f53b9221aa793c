package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

// The test binary is the first process of a process namespace, in which it may choose the
// numbers of others; or one that opens a connection, hands it over and ends.
const (
	recyclerRole = "PITCHPIPE_TEST_RECYCLER" // socket, cgroup and two users, with commas between
	leaverRole   = "PITCHPIPE_TEST_LEAVER"   // socket
)

// A connection stays open when the process that opened it has ended. The kernel gives its
// number to another process later, as one of another user's job.
func TestAReportOverAConnectionWhoseProcessHasEndedIsNoOtherJobs(t *testing.T) {
	const victim = "64002"
	for name, attacker := range map[string]string{"of another user": "64001", "of the same user": victim} {
		t.Run(name, func(t *testing.T) {
			dirs := leaves(t, "recycled-"+attacker+".1")
			dir := peercredtest.Dir(t)
			c := exec.CommandContext(t.Context(), "/proc/self/exe")
			c.Env = append(os.Environ(), recyclerRole+"="+strings.Join([]string{filepath.Join(dir, "s"), dirs[0], attacker, victim}, ","))
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
			c.Stderr = os.Stderr
			out, err := c.Output()
			if errors.Is(err, syscall.EPERM) {
				t.Skipf("no process namespace can be made here: %v", err)
			}
			const want = "saved: 403, epoch: 403, 0 saves and 0 marks\n"
			if text := string(out); strings.HasPrefix(text, "skip: ") {
				t.Skip(text)
			} else if err != nil || text != want {
				t.Errorf("%v, %swant %s", err, text, want)
			}
		})
	}
}

func recycle(args string) error {
	in := strings.Split(args, ",")
	socket, cgroup := in[0], in[1]
	attacker, err1 := strconv.ParseUint(in[2], 10, 32)
	victim, err2 := strconv.ParseUint(in[3], 10, 32)
	if err := errors.Join(err1, err2, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte("1000"), 0o600); err != nil {
		fmt.Printf("skip: numbers of processes cannot be chosen: %v\n", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel() // the namespace ends with this process, and all that runs in it
	exporter := exec.CommandContext(ctx, "/proc/self/exe")
	exporter.Env = append(os.Environ(), recyclerRole+"=", exporterRole+"="+strings.Join([]string{
		"--socket", socket, "--web.listen-address=", "--sampling.discover=20ms", "--log.level=error",
	}, "\n"))
	exporter.Stderr = os.Stderr
	if err := exporter.Start(); err != nil {
		return err
	}
	client := api.NewClient(socket)
	await := func(is func() bool) error {
		for ; !is(); time.Sleep(5 * time.Millisecond) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	}
	if err := await(func() bool { _, err := client.Node(ctx); return err == nil }); err != nil {
		return err
	}
	conn, pid, err := left(ctx, socket, uint32(attacker))
	if err != nil {
		return err
	}
	// The kernel tells when a process began in ticks of 10 ms, and gives a number again only
	// after all others.
	time.Sleep(50 * time.Millisecond)
	if err := become(ctx, pid, uint32(victim)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	id := strings.TrimSuffix(filepath.Base(cgroup), ".1")
	seen := func() api.Window { w, _ := client.Window(ctx, id, 1, 0); return w }
	if err := await(func() bool { return len(seen().Samples) > 0 }); err != nil {
		return err
	}
	for _, body := range []string{"saved", "epoch"} {
		text := map[string]string{"saved": `{"saved":true}`, "epoch": `{"epoch":1}`}[body]
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", api.PathProgress, len(text), text); err != nil {
			return err
		}
		status, err := answer(conn)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d, ", body, status)
	}
	marks := 0
	for _, s := range seen().Samples {
		if s.Mark != nil {
			marks++
		}
	}
	fmt.Printf("%d saves and %d marks\n", seen().Job.Saves, marks)
	return nil
}

// left has a user's process open a connection and end, and returns that and its number.
func left(ctx context.Context, socket string, uid uint32) (net.Conn, int, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, 0, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "ours"), os.NewFile(uintptr(ends[1]), "theirs")
	c := exec.CommandContext(ctx, "/proc/self/exe")
	c.Env = append(os.Environ(), recyclerRole+"=", leaverRole+"="+socket)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	c.ExtraFiles, c.Stderr = []*os.File{theirs}, os.Stderr
	if err := c.Run(); err != nil {
		return nil, 0, err
	}
	buf := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(ours.Fd()), make([]byte, 1), buf, 0)
	if err != nil {
		return nil, 0, err
	}
	messages, err := unix.ParseSocketControlMessage(buf[:n])
	if err != nil {
		return nil, 0, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, 0, err
	}
	conn, err := net.FileConn(os.NewFile(uintptr(fds[0]), "connection"))
	return conn, c.Process.Pid, err
}

// leave opens a connection, asks something over it, so that it has been accepted, and hands
// it over.
func leave(socket string) error {
	conn, err := net.Dial("unix", socket) //nolint:noctx // it is at once
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "GET "+api.PathJobs+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	if _, err := answer(conn); err != nil {
		return err
	}
	f, err := conn.(*net.UnixConn).File() //nolint:forcetypeassert // it is one
	if err != nil {
		return err
	}
	return unix.Sendmsg(3, []byte("."), unix.UnixRights(int(f.Fd())), nil, 0)
}

func answer(conn net.Conn) (int, error) {
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// become starts a user's process under a number that is free.
func become(ctx context.Context, pid int, uid uint32) error {
	for range 200 { // threads begin all the time, and may be first
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0o600); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, "sleep", "60")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if err := c.Start(); err != nil {
			return err
		}
		if c.Process.Pid == pid {
			return nil
		}
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	}
	return fmt.Errorf("the number %d was always taken", pid)
}
