package peercred

import (
	"cmp"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Room is how many connections are served at a time.
type Room struct {
	All       int // of all users
	Strangers int // of those whom Listener.Known does not know: the rest is left for operators
	Each      int // of one of those
	Own       int // that an owner of a job gets beside these, however many others there are
}

// Listener is a net.Listener with bounds. Its connections are Conns.
type Listener struct {
	net.Listener
	Room

	Known func(uid uint32) bool // reports whether the user is an operator; nil = none is
	Owns  func(uid uint32) bool // reports whether the user owns a job that runs; nil = none does
	Full  func(Caller)          // is called for each connection that is closed at once; may be nil
	Subs  Subordinates

	mu        sync.Mutex
	all       int // without those of Own
	strangers int // without those of Own
	in        map[Share]*count
}

type count struct{ shared, own int }

// Conn is a connection whose caller was asked for.
type Conn struct {
	net.Conn
	Caller

	err   error // why the caller is unknown
	leave func()
}

// Accept returns the next connection that there is room for.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // http.Server looks at what kind it is
		}
		who, leave, err := l.admit(conn)
		if leave == nil {
			if l.Full != nil {
				l.Full(who)
			}
			_ = conn.Close() // nothing was read from it
			continue
		}
		return &Conn{Conn: conn, Caller: who, err: err, leave: sync.OnceFunc(leave)}, nil
	}
}

// admit identifies a caller and counts it in; leave is nil where there is no room. The
// error is why it is unknown.
func (l *Listener) admit(conn net.Conn) (who Caller, leave func(), err error) {
	who, err = user(conn)
	known, owns := false, false
	if err == nil {
		who.Share.UID = l.Subs.owner(who.UID)
		known = l.Known != nil && l.Known(who.UID)
		owns = !known && l.Owns != nil && (l.Owns(who.UID) || l.Owns(who.Share.UID))
	}
	leave = l.enter(who.Share, known, owns)
	if c, ok := conn.(*net.UnixConn); ok && leave != nil && err == nil {
		who.find(c) // last, since it costs the most
	}
	return who, leave, err
}

func (l *Listener) enter(s Share, known, owns bool) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in == nil {
		l.in = map[Share]*count{}
	}
	c := l.in[s]
	if c == nil {
		c = &count{}
	}
	var places []*int
	switch {
	case known && l.all < l.All:
		places = []*int{&l.all}
	case known:
		return nil
	case l.all < l.All && l.strangers < l.Strangers && c.shared < l.Each:
		places = []*int{&l.all, &l.strangers, &c.shared}
	case owns && c.own < l.Own:
		places = []*int{&c.own}
	default:
		return nil
	}
	l.in[s] = c
	for _, n := range places {
		*n++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, n := range places {
			*n--
		}
		if *c == (count{}) && l.in[s] == c {
			delete(l.in, s)
		}
	}
}

// Close makes room for another.
func (c *Conn) Close() error {
	defer c.leave()
	return c.Conn.Close() //nolint:wrapcheck // it is the connection
}

// CloseWrite lets an answer arrive although the request is not read to its end.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite() //nolint:wrapcheck // it is the connection
	}
	return nil
}

// Subordinates are the uids that users may take besides their own, as /etc/subuid gives
// them out. It is read again when it changes.
type Subordinates struct {
	Path string // empty = /etc/subuid

	mu     sync.Mutex
	seen   time.Time // when the file that was read was last changed
	size   int64
	ranges []span
}

type span struct {
	first, last uint64
	owner       uint32
}

// owner returns the user who holds a uid: itself where it is not a subordinate.
func (s *Subordinates) owner(uid uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := cmp.Or(s.Path, "/etc/subuid")
	info, err := os.Stat(path)
	if err != nil {
		return uid
	}
	if !info.ModTime().Equal(s.seen) || info.Size() != s.size {
		if text, err := os.ReadFile(path); err == nil {
			s.seen, s.size, s.ranges = info.ModTime(), info.Size(), parse(string(text))
		}
	}
	for _, r := range s.ranges {
		if uint64(uid) >= r.first && uint64(uid) <= r.last {
			return r.owner
		}
	}
	return uid
}

// Above that a range belongs to no user: it covers the machine's own.
const maxRange = 1 << 24

// parse reads lines of OWNER:FIRST:COUNT, in which the owner is a name in /etc/passwd or a
// uid. A range of root's or of a program that is not installed, such as lxd, counts for
// nothing: other users may be in it, who would share one share.
func parse(text string) []span {
	uids := map[string]uint32{}
	passwd, _ := os.ReadFile("/etc/passwd") // without it only uids are owners
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); len(f) > 2 {
			if uid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
				uids[f[0]] = uint32(uid)
			}
		}
	}
	var out []span
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || count == 0 || count > maxRange || first == 0 {
			continue
		}
		owner := uids[f[0]] // 0 = it is root, or there is none
		if uid, err := strconv.ParseUint(f[0], 10, 32); err == nil {
			owner = uint32(uid)
		}
		if owner != 0 {
			out = append(out, span{first, min(first+count-1, math.MaxUint32-1), owner})
		}
	}
	return out
}
