package peercredtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// As does something as another user, whom the kernel names at the sockets that are opened
// there, and skips the test where it may not.
func As(t testing.TB, uid uint32, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("to be another user needs root")
	}
	if err := <-as(uid, do); err != nil {
		t.Fatal(err)
	}
}

func as(uid uint32, do func()) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread is thrown away
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			done <- errno
			return
		}
		do()
		done <- nil
	}()
	return done
}

// Dir is a folder that others can enter, unlike a test's own.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pitchpipe-*") //nolint:usetesting // others cannot enter the folder above a test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others have to reach the socket
		t.Fatal(err)
	}
	return dir
}

// Dial opens a connection on this thread, which a net.Dialer may not.
func Dial(network, address string) (net.Conn, error) {
	if network == "unix" {
		return net.DialUnix(network, nil, &net.UnixAddr{Name: address, Net: network})
	}
	at, err := net.ResolveTCPAddr(network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // of a test
	}
	return net.DialTCP(network, nil, at)
}

// Ask sends one request over a connection that this thread opens, and returns the status and
// the text of the answer, which has to come within a time.
func Ask(network, address, method, path, body string, within time.Duration) (status int, text string, err error) {
	conn, err := Dial(network, address)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	req, err := http.NewRequestWithContext(context.Background(), method, "http://x"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err //nolint:wrapcheck // of a test
	}
	req.Close = true
	if err := errors.Join(conn.SetDeadline(time.Now().Add(within)), req.Write(conn)); err != nil {
		return 0, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return 0, "", err //nolint:wrapcheck // of a test
	}
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), errors.Join(err, res.Body.Close())
}

// Crowd are users who take as many connections as they get until the test ends.
type Crowd struct {
	open atomic.Int64 // connections that they had when they last looked
}

// Settle waits until they have as many connections as there is room for.
func (c *Crowd) Settle(t testing.TB, room int) {
	t.Helper()
	open := func() int { return int(c.open.Load()) }
	for deadline := time.Now().Add(20 * time.Second); open() > room || open() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are served, of %d that there is room for", open(), room)
		}
	}
}

// Surround makes users ask for so many connections each. Some stay idle and some send a
// request a byte at a time. It returns when all have tried once. What is closed they open
// again once a second.
func Surround(t testing.TB, network, address string, idle, slow int, uids ...uint32) *Crowd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("to be another user needs root")
	}
	var crowd Crowd
	var first sync.WaitGroup
	first.Add(len(uids))
	ctx, cancel := context.WithCancel(context.Background())
	var all []<-chan error
	for _, uid := range uids {
		all = append(all, as(uid, func() { crowd.press(ctx, network, address, idle, slow, first.Done) }))
	}
	t.Cleanup(func() {
		cancel()
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	first.Wait()
	return &crowd
}

func (c *Crowd) press(ctx context.Context, network, address string, idle, slow int, tried func()) {
	conns := make([]net.Conn, idle+slow)
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	open := 0
	for round := 0; ; round++ {
		now := 0 // of those that are a second old
		for i, conn := range conns {
			if conn != nil && alive(conn, i >= idle) {
				now++
				continue
			}
			if conn != nil {
				_ = conn.Close()
				conns[i] = nil
			}
			if dialled, err := Dial(network, address); err == nil {
				conns[i] = dialled
				if i < idle { // it has asked, so that its next request is waited for longest
					_, _ = io.WriteString(dialled, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n") // it may be closed by now
				}
			}
		}
		c.open.Add(int64(now - open))
		open = now
		if round == 0 {
			tried()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// alive reports whether the other end keeps the connection, and sends the next byte of a
// slow request.
func alive(conn net.Conn, slow bool) bool {
	if slow {
		if _, err := conn.Write([]byte("G")); err != nil {
			return false
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false
	}
	_, err := io.Copy(io.Discard, conn)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// Answers asks as a user, and reports what is wrong unless the answer has that status and
// comes within a second. It asks up to three times, since the machine may be busy with
// other tests.
func Answers(t testing.TB, uid uint32, network, address, method, path string, want int) (text string) {
	t.Helper()
	var status int
	var err error
	for range 3 {
		As(t, uid, func() { status, text, err = Ask(network, address, method, path, "", 3*time.Second) })
		if err == nil && status == want {
			return text
		}
	}
	t.Errorf("%s %s by user %d: status %d, %q, %v; want %d within a second", method, path, uid, status, text, err, want)
	return ""
}
