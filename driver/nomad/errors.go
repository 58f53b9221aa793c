package nomad

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// right is what a token needs for a request: a capability of the job's namespace.
type right string

// The rights that the driver uses; scripts/nomad/README.md says what each is for.
const (
	listJobs       right = "list-jobs"
	readJob        right = "read-job"
	parseJob       right = "parse-job"
	planJob        right = "plan-job"
	registerJob    right = "register-job"
	deregisterJob  right = "deregister-job"
	allocLifecycle right = "alloc-lifecycle"
	readFS         right = "read-fs"
	readNodes      right = "node"

	// Of the variables below nomad/jobs.
	readVariable    right = "read"
	writeVariable   right = "write"
	destroyVariable right = "destroy"
)

// lacks returns a sentence about the rights that a denied token lacks.
func (r right) lacks(namespace string) string {
	if r == readNodes {
		return `the token has not the rule node { policy = "read" }`
	}
	if r == readVariable || r == writeVariable || r == destroyVariable {
		return fmt.Sprintf("the token lacks the capability %s on the variables nomad/jobs/* in the namespace %s", r, namespace)
	}
	or := ""
	if r == planJob || r == registerJob || r == deregisterJob {
		or = " (submit-job before Nomad 2.0)"
	}
	return fmt.Sprintf("the token lacks the capability %s%s in the namespace %s", r, or, namespace)
}

// asked names the error of a request that only reads.
func asked(what string, r right, namespace string, err error) error {
	return named(what, r, namespace, err, driver.ErrTransient)
}

// named returns the contract's error of a failed request, and for a denied one the
// missing right. Nomad answers most faults with status 500 and a text, a stale index
// too; lost is what an answer that never came means.
func named(what string, r right, namespace string, err, lost error) error {
	if err == nil {
		return nil
	}
	kind := lost
	var answer api.UnexpectedResponseError
	switch {
	case errors.As(err, &answer) && answer.HasStatusCode():
		kind = answered(answer.StatusCode(), answer.Body())
	case refused(err):
		kind = driver.ErrTransient
	}
	if errors.Is(kind, driver.ErrDenied) {
		return fmt.Errorf("%s: %w: %s: %w", what, kind, r.lacks(namespace), err)
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}

// answered returns the error that an HTTP status and its text mean.
func answered(status int, body string) error {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(body, w) })
	}
	switch {
	case has("Enforcing job modify index", "conflicting job modify index"):
		return driver.ErrConflict
	case status == http.StatusForbidden || has("Permission denied"):
		return driver.ErrDenied
	case has(noPath), status == http.StatusTooManyRequests:
		return driver.ErrTransient
	case status == http.StatusNotFound || has("job not found", "alloc not found", "unknown allocation", "Unknown allocation"):
		return driver.ErrNotFound
	case status >= 400 && status < 500:
		return driver.ErrInvalid
	case has("rpc error", "i/o timeout", "connection lost", "EOF", "leadership lost", "raft"):
		return driver.ErrUnknown
	case has("validation", "error occurred:", "errors occurred:", "cannot update", "read-only", "must "):
		return driver.ErrInvalid
	}
	return driver.ErrTransient
}

// noPath is what Nomad answers with 404 while no server is connected to the client of a node.
const noPath = "No path to node"

// refused reports whether a request certainly did not reach an agent.
func refused(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &op) && op.Op == "dial"
}
