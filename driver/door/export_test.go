package door

// Places are those of a listener, without connections.
type Places struct{ l Listener }

// NewPlaces are all free.
func NewPlaces(r Room) *Places { return &Places{Listener{Room: r}} }

// Enter takes one.
func (p *Places) Enter(uid uint32, stranger bool) bool { return p.l.enter(uid, stranger) }

// Leave gives it back.
func (p *Places) Leave(uid uint32, stranger bool) { p.l.left(uid, stranger) }
