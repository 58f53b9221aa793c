package peercred

// Enter takes a place; nil = none.
func (l *Listener) Enter(uid uint32, known, owns bool) (leave func()) {
	return l.enter(Share{UID: uid}, known, owns)
}

// Owner is whose a uid is.
func (s *Subordinates) Owner(uid uint32) uint32 { return s.owner(uid) }
