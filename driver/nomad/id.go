package nomad

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// where is a job's place in Nomad.
type where struct{ namespace, id string }

// jobID is the name that a job has here: its own in the namespace default, elsewhere
// ID@NAMESPACE. An id that holds an @ always has its namespace.
func (w where) jobID() driver.JobID {
	if w.namespace == api.DefaultNamespace && !strings.Contains(w.id, "@") {
		return driver.JobID(w.id)
	}
	return driver.JobID(w.id + "@" + w.namespace)
}

// place finds the job of a name.
func place(id driver.JobID) where {
	if i := strings.LastIndex(string(id), "@"); i >= 0 {
		return where{namespace: string(id)[i+1:], id: string(id)[:i]}
	}
	return where{namespace: api.DefaultNamespace, id: string(id)}
}

// digest is short and the same for the same text.
func digest(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:n]
}

// ownID is the id of the job that a request makes: it is that of no other request and
// of no job that a person would register.
func ownID(name string, request driver.RequestID) string {
	return fmt.Sprintf("%s-%s", name, digest(string(request), 10))
}
