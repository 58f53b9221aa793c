package peercred

import "strings"

// Listed finds a connection in a list in the form of /proc/net/tcp.
func Listed(list, local, remote string) (uint32, bool) {
	u := users{}
	u.ask(ends{local, remote})
	u.read(strings.NewReader(list))
	uid := *u[ends{local, remote}]
	return uid, uid != Nobody
}

// Kept is how much of a list is kept, where one connection is asked for.
func Kept(list, local, remote string) int {
	u := users{}
	u.ask(ends{local, remote})
	u.read(strings.NewReader(list))
	return len(u)
}

// Enter takes a place; nil = there is none.
func (l *Listener) Enter(uid uint32, known, owns bool) (leave func()) {
	return l.enter(Share{UID: uid}, known, owns)
}

// Owner is whose a uid is.
func (s *Subordinates) Owner(uid uint32) uint32 { return s.owner(uid) }
