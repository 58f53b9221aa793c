package peer

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/door"
)

// ErrUnknown means that the connection has no peer credentials.
var ErrUnknown = errors.New("caller unknown: not a Unix socket")

// Peer is a caller.
type Peer struct {
	UID  uint32
	Name string
	also string // owners whose jobs are his too, with a comma behind each
}

// With is the same caller, to whom the jobs of another owner belong too. An owner's name
// has no comma.
func (p Peer) With(owner string) Peer {
	p.also += owner + ","
	return p
}

type key struct{}

// Privileged tells whether the caller may act for others: root, and whoever the
// controller itself runs as.
func (p Peer) Privileged() bool { return p.UID == 0 || int(p.UID) == os.Geteuid() }

// May tells whether the caller may see and stop jobs of this owner.
func (p Peer) May(owner string) bool {
	return p.Privileged() || p.Name == owner || owner != "" && slices.Contains(strings.Split(p.also, ","), owner)
}

// ConnContext is for http.Server: it puts the peer into each request's context.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	p, err := of(conn)
	if err != nil {
		return ctx
	}
	return NewContext(ctx, p)
}

// NewContext puts a peer that is known by other means into the context, as where
// a process asks itself.
func NewContext(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns the peer that ConnContext put there.
func From(ctx context.Context) (Peer, error) {
	p, ok := ctx.Value(key{}).(Peer)
	if !ok {
		return Peer{}, ErrUnknown
	}
	return p, nil
}

// directory asks the machine's directory service for the name of a user who is not in
// /etc/passwd, which is all that a static program reads; empty where it knows none.
func directory(id string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "id", "-un", "--", id).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func of(conn net.Conn) (Peer, error) {
	uid, err := door.UID(conn)
	if err != nil {
		return Peer{}, err
	}
	id := strconv.FormatUint(uint64(uid), 10)
	name := id
	if u, err := user.LookupId(id); err == nil {
		name = u.Username
	} else if found := directory(id); found != "" {
		name = found
	}
	return Peer{UID: uid, Name: name}, nil
}
