package acl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// refusal is an answer with a text instead of a body.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// ServeHTTP answers what is below /v1/acl/.
func (a *ACL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := a.serve(r)
	if err != nil {
		code := http.StatusInternalServerError
		if refused, ok := errors.AsType[*refusal](err); ok {
			code = refused.code
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, err.Error()) // the client is gone otherwise
		return
	}
	a.mu.Lock()
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(max(1, a.index), 10))
	a.mu.Unlock()
	if body == nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // as above
}

func tokenOf(r *http.Request) string {
	if t := r.Header.Get("X-Nomad-Token"); t != "" {
		return t
	}
	t, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return t
}

func (a *ACL) serve(r *http.Request) (any, error) {
	path, _ := strings.CutPrefix(r.URL.Path, "/v1/acl/")
	secret := tokenOf(r)
	write := r.Method == http.MethodPut || r.Method == http.MethodPost
	switch {
	case path == "bootstrap" && write:
		return a.bootstrap(r)
	case !a.Known(secret):
		return nil, refuse(http.StatusForbidden, "Permission denied")
	case path == "token/self":
		return a.self(secret)
	case (path == "policies" || path == "policy/self") && r.Method == http.MethodGet:
		return a.listPolicies(secret, r.URL.Query().Get("prefix")), nil
	case strings.HasPrefix(path, "policy/") && r.Method == http.MethodGet:
		return a.readPolicy(secret, strings.TrimPrefix(path, "policy/"))
	case !a.Management(secret):
		return nil, refuse(http.StatusForbidden, "Permission denied")
	}
	name, isPolicy := strings.CutPrefix(path, "policy/")
	accessor, isToken := strings.CutPrefix(path, "token/")
	if !isToken {
		accessor = ""
	}
	switch {
	case isPolicy && write:
		return nil, a.writePolicy(r, name)
	case isPolicy && r.Method == http.MethodDelete:
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.policies, name)
		a.touch()
		return nil, nil //nolint:nilnil // an empty answer
	case path == "tokens" && r.Method == http.MethodGet:
		return a.listTokens(), nil
	case (path == "token" || isToken) && write:
		return a.writeToken(r, accessor)
	case isToken && r.Method == http.MethodGet:
		return a.readToken(accessor)
	case isToken && r.Method == http.MethodDelete:
		return nil, a.deleteToken(accessor)
	}
	return nil, refuse(http.StatusNotFound, "Invalid URL path")
}

func (a *ACL) bootstrap(r *http.Request) (any, error) {
	var in struct{ BootstrapSecret string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, "failed to decode request body: %s", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reset != 0 {
		return nil, refuse(http.StatusBadRequest, "ACL bootstrap already done (reset index: %d)", a.reset)
	}
	a.reset = a.touch()
	t := &api.ACLToken{
		AccessorID: uuid(), SecretID: cmp.Or(in.BootstrapSecret, uuid()), Name: "Bootstrap Token", Type: "management", Global: true,
		CreateTime: time.Now().UTC(), CreateIndex: a.reset, ModifyIndex: a.reset,
	}
	a.tokens[t.SecretID] = t
	return t, nil
}

func (a *ACL) self(secret string) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.live(secret); t != nil {
		return t, nil
	}
	return nil, refuse(http.StatusNotFound, "ACL token not found")
}

func (a *ACL) listPolicies(secret, prefix string) any {
	management, own := a.Management(secret), a.names(secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []*api.ACLPolicyListStub{}
	for _, name := range slices.Sorted(maps.Keys(a.policies)) {
		p := a.policies[name]
		if strings.HasPrefix(name, prefix) && (management || slices.Contains(own, name)) {
			out = append(out, &api.ACLPolicyListStub{Name: name, Description: p.Description, CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex})
		}
	}
	return out
}

func (a *ACL) readPolicy(secret, name string) (any, error) {
	if !a.Management(secret) && !slices.Contains(a.names(secret), name) {
		return nil, refuse(http.StatusForbidden, "Permission denied")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.policies[name]; p != nil {
		return p.ACLPolicy, nil
	}
	return nil, refuse(http.StatusNotFound, "ACL policy not found")
}

func (a *ACL) writePolicy(r *http.Request, name string) error {
	var in api.ACLPolicy
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	if in.Name != name {
		return refuse(http.StatusBadRequest, "ACL policy name does not match request path")
	}
	said, err := parse(in.Rules)
	if err != nil {
		return refuse(http.StatusBadRequest, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: %v\n\n", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	in.ModifyIndex = a.touch()
	in.CreateIndex = in.ModifyIndex
	if old := a.policies[name]; old != nil {
		in.CreateIndex = old.CreateIndex
	}
	a.policies[name] = &policy{ACLPolicy: in, rules: said}
	return nil
}

// find is the token with the accessor. The caller holds the lock.
func (a *ACL) find(accessor string) *api.ACLToken {
	for _, t := range a.tokens {
		if t.AccessorID == accessor {
			return t
		}
	}
	return nil
}

func (a *ACL) listTokens() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []*api.ACLTokenListStub{}
	for _, t := range a.tokens {
		out = append(out, &api.ACLTokenListStub{
			AccessorID: t.AccessorID, Name: t.Name, Type: t.Type, Policies: t.Policies, Global: t.Global, CreateTime: t.CreateTime,
			CreateIndex: t.CreateIndex, ModifyIndex: t.ModifyIndex, ExpirationTime: t.ExpirationTime,
		})
	}
	slices.SortFunc(out, func(x, y *api.ACLTokenListStub) int { return cmp.Compare(x.AccessorID, y.AccessorID) })
	return out
}

func (a *ACL) readToken(accessor string) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.find(accessor); t != nil {
		return t, nil
	}
	return nil, refuse(http.StatusNotFound, "ACL token not found")
}

func (a *ACL) writeToken(r *http.Request, accessor string) (any, error) {
	var in api.ACLToken
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	if accessor != "" && in.AccessorID != accessor {
		return nil, refuse(http.StatusBadRequest, "ACL token accessor does not match request path")
	}
	switch {
	case in.Type != "client" && in.Type != "management":
		return nil, refuse(http.StatusBadRequest, "token 0 invalid: 1 error occurred:\n\t* token type must be client or management\n\n")
	case in.Type == "client" && len(in.Policies) == 0 && len(in.Roles) == 0:
		return nil, refuse(http.StatusBadRequest, "token 0 invalid: 1 error occurred:\n\t* client token missing policies or roles\n\n")
	case in.Type == "management" && len(in.Policies)+len(in.Roles) > 0:
		return nil, refuse(http.StatusBadRequest, "token 0 invalid: 1 error occurred:\n\t* management token cannot be associated with policies or roles\n\n")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	in.ModifyIndex = a.touch()
	if old := a.find(in.AccessorID); old != nil {
		in.SecretID, in.CreateIndex, in.CreateTime, in.ExpirationTime = old.SecretID, old.CreateIndex, old.CreateTime, old.ExpirationTime
	} else {
		if accessor != "" {
			return nil, refuse(http.StatusBadRequest, "cannot find token %s", accessor)
		}
		in.AccessorID, in.SecretID = uuid(), uuid()
		in.CreateIndex, in.CreateTime = in.ModifyIndex, time.Now().UTC()
		if in.ExpirationTTL > 0 {
			at := in.CreateTime.Add(in.ExpirationTTL)
			in.ExpirationTime = &at
		}
	}
	a.tokens[in.SecretID] = &in
	return &in, nil
}

func (a *ACL) deleteToken(accessor string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.find(accessor)
	if t == nil {
		return refuse(http.StatusBadRequest, "Cannot delete nonexistent tokens: %s", accessor)
	}
	delete(a.tokens, t.SecretID)
	a.touch()
	return nil
}
