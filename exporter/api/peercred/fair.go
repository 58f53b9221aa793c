package peercred

import (
	"net"
	"sync"
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

// count is what one user has.
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
