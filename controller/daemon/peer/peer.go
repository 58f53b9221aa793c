package peer

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitchpipe/exporter/api/peercred"
)

// ErrUnknown means that the connection has no peer credentials.
var ErrUnknown = errors.New("caller unknown: not a Unix socket")

// Peer is a caller.
type Peer struct {
	UID  uint32
	Name string
	also string // owners whose jobs are his too, with a comma after each
}

// With is the same caller, who may act for another owner as well. An owner's name has no
// comma.
func (p Peer) With(owner string) Peer {
	p.also += owner + ","
	return p
}

type key struct{}

// Privileged reports whether the caller may act for others: root, and the user that the
// controller runs as.
func (p Peer) Privileged() bool { return p.UID == 0 || int(p.UID) == os.Geteuid() }

// May reports whether the caller may see and stop jobs of this owner.
func (p Peer) May(owner string) bool {
	return p.Privileged() || p.Name == owner || owner != "" && slices.Contains(strings.Split(p.also, ","), owner)
}

// ConnContext is for http.Server: it puts the peer into each request's context. The name
// is looked up by the first request, which alone waits for a directory service.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	who, err := peercred.Of(conn)
	if _, tcp := conn.(*net.TCPConn); tcp || err != nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, sync.OnceValue(func() Peer { return Peer{UID: who.UID, Name: name(who.UID)} }))
}

// NewContext puts a peer that is known by other means into the context, as in a process
// that calls its own API.
func NewContext(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, key{}, func() Peer { return p })
}

// From returns the peer that ConnContext or NewContext put there.
func From(ctx context.Context) (Peer, error) {
	p, ok := ctx.Value(key{}).(func() Peer)
	if !ok {
		return Peer{}, ErrUnknown
	}
	return p(), nil
}

// directory asks the machine's directory service about a user who is not in /etc/passwd,
// the only source of a static program. It returns an empty text for an unknown user.
func directory(ctx context.Context, what, user string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "id", what, "--", user).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func name(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return cmp.Or(directory(context.Background(), "-un", id), id)
}

// UID is the user of a name, as Peer has it; false where there is none.
func UID(ctx context.Context, name string) (uint32, bool) {
	id := name // of a user without a name
	if u, err := user.Lookup(name); err == nil {
		id = u.Uid
	} else if _, err := strconv.ParseUint(name, 10, 32); err != nil {
		id = directory(ctx, "-u", name)
	}
	uid, err := strconv.ParseUint(id, 10, 32)
	return uint32(uid), err == nil
}
