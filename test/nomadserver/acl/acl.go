package acl

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Claim is what an identity says of its task. Job is that of the parent where the job
// was dispatched or is one run of a periodic one.
type Claim struct{ Namespace, Job, Group, Task, Alloc string }

// policy is a policy with what it says.
type policy struct {
	api.ACLPolicy
	rules rules
}

// ACL are the tokens and policies of a cluster. Its methods may be called at the same
// time.
type ACL struct {
	next func() uint64

	mu       sync.Mutex
	index    uint64
	reset    uint64                   // index of the bootstrap, 0 = it was not done
	tokens   map[string]*api.ACLToken // by secret
	policies map[string]*policy
	claims   map[string]*Claim // by identity
}

// New makes one without tokens: until the bootstrap nobody may anything.
func New() *ACL {
	return &ACL{tokens: map[string]*api.ACLToken{}, policies: map[string]*policy{}, claims: map[string]*Claim{}}
}

// Tie says where the cluster's next index comes from, before the first request. Without
// it the package counts by itself.
func (a *ACL) Tie(next func() uint64) *ACL {
	a.next = next
	return a
}

// touch takes the next index. The caller holds the lock.
func (a *ACL) touch() uint64 {
	if a.next != nil {
		a.index = a.next()
	} else {
		a.index++
	}
	return a.index
}

// Allows tells whether a token has a capability in a namespace, "*" = in any. What
// belongs to no namespace is asked for with namespace "" as "node:read", "agent:write",
// "operator:read" and so on.
func (a *ACL) Allows(token, namespace, capability string) bool {
	r, _, management := a.of(token)
	switch {
	case management:
		return true
	case namespace == "":
		return r.beyond(capability)
	default:
		return r.namespace(namespace, capability)
	}
}

// AllowsVariable tells whether a token may list, read, write or destroy a variable.
func (a *ACL) AllowsVariable(token, namespace, path, capability string) bool {
	r, c, management := a.of(token)
	return management || r.variable(namespace, path, capability, c)
}

// Management tells whether a token may everything.
func (a *ACL) Management(token string) bool {
	_, _, management := a.of(token)
	return management
}

// Known tells whether a token is one. None at all is anonymous, which is known and may
// nothing.
func (a *ACL) Known(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return token == "" || a.claims[token] != nil || a.live(token) != nil
}

// Identify gives out the identity of a task, which is a token.
func (a *ACL) Identify(c Claim) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // a map of texts
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	token := part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(map[string]string{
		"nomad_namespace": c.Namespace, "nomad_job_id": c.Job, "nomad_allocation_id": c.Alloc, "nomad_task": c.Task, "aud": "nomadproject.io",
	}) + "." + rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claims[token] = &c
	return token
}

// Forget takes the identities of an allocation that has ended back.
func (a *ACL) Forget(alloc string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for token, c := range a.claims {
		if c.Alloc == alloc {
			delete(a.claims, token)
		}
	}
}

// live is a token that has not expired. The caller holds the lock.
func (a *ACL) live(secret string) *api.ACLToken {
	t := a.tokens[secret]
	if t == nil || t.ExpirationTime != nil && !time.Now().Before(*t.ExpirationTime) {
		return nil
	}
	return t
}

// of gathers what a token may: the rules of its policies, or that it may everything.
func (a *ACL) of(token string) (rules, *Claim, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := newRules()
	if c := a.claims[token]; c != nil {
		for _, p := range a.policies {
			if bound(p.JobACL, c) {
				out.merge(p.rules)
			}
		}
		return out, c, false
	}
	t := a.live(token)
	if t == nil {
		return out, nil, false
	}
	if t.Type == "management" {
		return out, nil, true
	}
	for _, name := range t.Policies {
		if p := a.policies[name]; p != nil {
			out.merge(p.rules)
		}
	}
	return out, nil, false
}

// bound tells whether a policy is bound to a task.
func bound(b *api.JobACL, c *Claim) bool {
	switch {
	case b == nil || b.Namespace != c.Namespace:
		return false
	case b.JobID == "":
		return true
	default:
		return b.JobID == c.Job && (b.Group == "" || b.Group == c.Group && (b.Task == "" || b.Task == c.Task))
	}
}

// names are the policies that a token has.
func (a *ACL) names(token string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	if c := a.claims[token]; c != nil {
		for name, p := range a.policies {
			if bound(p.JobACL, c) {
				out = append(out, name)
			}
		}
	} else if t := a.live(token); t != nil {
		out = slices.Clone(t.Policies)
	}
	slices.Sort(out)
	return out
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return strings.ToLower(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}
