package nomadvars

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxPath is what Nomad takes as the path of a variable.
const maxPath = 128

// paths gives pages their variables, below a prefix.
type paths string

// of is the path of a page's variable, and whether it is hidden: a checksum, since it
// would be too long. The beginning of a page's path gives the beginning of the
// variable's unless it is hidden.
func (p paths) of(path string) (at string, hidden bool) {
	at = string(p) + "/" + escape(path)
	if len(at) <= maxPath {
		return at, false
	}
	sum := sha256.Sum256([]byte(path))
	return p.hidden() + hex.EncodeToString(sum[:]), true
}

// hidden is where the variables lie whose own path would be too long.
func (p paths) hidden() string { return string(p) + "/h/" }

// plain is the page's path of a variable that is not hidden.
func (p paths) plain(at string) (string, bool) {
	path, ok := strings.CutPrefix(at, string(p)+"/")
	return unescape(path), ok && !strings.HasPrefix(path, "h/")
}

// escape writes what Nomad does not take, and the sign that it is written with.
func escape(path string) string {
	return strings.NewReplacer(".", "~2e", "~", "~7e").Replace(path)
}

func unescape(path string) string {
	return strings.NewReplacer("~2e", ".", "~7e", "~").Replace(path)
}
