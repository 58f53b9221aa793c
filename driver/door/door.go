package door

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrUnknown says that nobody knows who opened a connection.
var ErrUnknown = errors.New("caller unknown: not a Unix socket")

// Nobody is a uid that the kernel never gives.
const Nobody = ^uint32(0)

// Room is how many connections are served at a time.
type Room struct {
	All       int // of everybody
	Strangers int // of those whom Listener.Known does not know, so that these keep nobody else out
	Each      int // of one uid that is not known
}

// Listener is a net.Listener with bounds. Its connections are Guests.
type Listener struct {
	net.Listener
	Room

	Known func(uid uint32) bool // is never kept out by strangers
	Full  func(uid uint32)      // told of each connection that is closed at once

	mu        sync.Mutex
	all       int
	strangers map[uint32]int
}

// Guest is a connection whose user was asked for.
type Guest struct {
	net.Conn

	uid   uint32
	err   error // why nobody knows who it is
	leave func()
}

// Accept returns the next connection that there is room for.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, unknown := UID(conn)
		stranger := unknown != nil || !l.Known(uid)
		if !l.enter(uid, stranger) {
			_ = conn.Close() // nobody there has asked anything yet
			l.Full(uid)
			continue
		}
		return &Guest{Conn: conn, uid: uid, err: unknown, leave: sync.OnceFunc(func() { l.left(uid, stranger) })}, nil
	}
}

func (l *Listener) enter(uid uint32, stranger bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.All {
		return false
	}
	if stranger {
		sum := 0
		for _, n := range l.strangers {
			sum += n
		}
		if sum >= l.Strangers || l.strangers[uid] >= l.Each {
			return false
		}
		if l.strangers == nil {
			l.strangers = map[uint32]int{}
		}
		l.strangers[uid]++
	}
	l.all++
	return true
}

func (l *Listener) left(uid uint32, stranger bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if !stranger {
		return
	}
	if l.strangers[uid]--; l.strangers[uid] == 0 {
		delete(l.strangers, uid)
	}
}

// Close makes room for another.
func (g *Guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// CloseWrite lets an answer arrive although what was asked is not read to its end.
func (g *Guest) CloseWrite() error {
	if w, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// UID is the user who opened a connection, as the kernel says. Its error is ErrUnknown
// where that is no Unix socket, and the uid is Nobody with each error.
func UID(conn net.Conn) (uint32, error) {
	if g, ok := conn.(*Guest); ok {
		return g.uid, g.err
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return Nobody, ErrUnknown
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Nobody, fmt.Errorf("peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, asked); err != nil {
		return Nobody, fmt.Errorf("peer credentials: %w", err)
	}
	return cred.Uid, nil
}
