package nomadserver

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
)

// policy is what a policy file says. Namespaces are named in full. Paths of
// variables may have * for anything; the longest that matches counts.
type policy struct {
	Namespaces []struct {
		Name         string   `hcl:"name,label"`
		Capabilities []string `hcl:"capabilities,optional"`
		Variables    *struct {
			Paths []struct {
				Spec         string   `hcl:"spec,label"`
				Capabilities []string `hcl:"capabilities"`
			} `hcl:"path,block"`
		} `hcl:"variables,block"`
	} `hcl:"namespace,block"`
	Node *struct {
		Policy string `hcl:"policy"`
	} `hcl:"node,block"`
	Agent *struct {
		Policy string `hcl:"policy"`
	} `hcl:"agent,block"`
}

func parsePolicy(text string) (*policy, error) {
	out := &policy{}
	file, diags := hclsyntax.ParseConfig([]byte(text), "policy.hcl", hcl.InitialPos)
	if !diags.HasErrors() {
		diags = gohcl.DecodeBody(file.Body, nil, out)
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return out, nil
}

// authority keeps the policies and tokens of a cluster.
type authority struct {
	mu       sync.Mutex
	root     string // the management token, "" before the bootstrap
	policies map[string]*policy
	tokens   map[string][]string // names of policies, by secret
}

// policies are those of the token; management may do everything, as all may without an authority.
func (c *call) policies() (list []*policy, management bool) {
	a, token := c.s.authority, c.r.Header.Get("X-Nomad-Token")
	if a == nil {
		return nil, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.tokens[token] {
		if p := a.policies[name]; p != nil {
			list = append(list, p)
		}
	}
	return list, a.root != "" && token == a.root
}

// submitJob are the rights of submit-job, which it was split into in 2.0.
func submitJob() []string {
	return []string{"register-job", "revert-job", "deregister-job", "plan-job", "tag-job-version", "parse-job"}
}

// may reports whether the token has any of the rights, separated by |, in a namespace.
func (c *call) may(namespace, rights string) bool {
	list, management := c.policies()
	return management || slices.ContainsFunc(list, func(p *policy) bool {
		return slices.ContainsFunc(strings.Split(rights, "|"), func(right string) bool { return p.allows(namespace, right) })
	})
}

func (p *policy) allows(namespace, right string) bool {
	if strings.Contains(right, ":") {
		return right == "node:read" && p.Node != nil
	}
	for _, n := range p.Namespaces {
		if n.Name == namespace && (slices.Contains(n.Capabilities, right) || slices.Contains(n.Capabilities, "submit-job") && slices.Contains(submitJob(), right)) {
			return true
		}
	}
	return false
}

// mayVariable reports whether the token may list, read, write or destroy a variable.
func (c *call) mayVariable(namespace, path, right string) bool {
	list, management := c.policies()
	spec, allowed := "", management
	for _, p := range list {
		for _, n := range p.Namespaces {
			if n.Name != namespace || n.Variables == nil {
				continue
			}
			for _, at := range n.Variables.Paths {
				glob := "^" + strings.ReplaceAll(regexp.QuoteMeta(at.Spec), `\*`, ".*") + "$"
				if ok, err := regexp.MatchString(glob, path); err != nil || !ok || len(at.Spec) < len(spec) {
					continue
				}
				has := func(word string) bool { return slices.Contains(at.Capabilities, word) }
				spec, allowed = at.Spec, management || has(right) || right == "list" && (has("read") || has("write"))
			}
		}
	}
	return allowed
}

// management reports whether the token may do everything.
func (c *call) management() bool {
	_, management := c.policies()
	return management
}

// governed serves a change of the authority, which there is where the cluster has ACLs.
func governed(serve func(*call) error) func(*call) error {
	return func(c *call) error {
		if c.s.authority == nil {
			return refuse(http.StatusInternalServerError, "ACL support disabled")
		}
		c.s.authority.mu.Lock()
		defer c.s.authority.mu.Unlock()
		return serve(c)
	}
}

func bootstrap(c *call) error {
	a := c.s.authority
	if a.root != "" {
		return refuse(http.StatusBadRequest, "ACL bootstrap already done (reset index: 1)")
	}
	a.root = uuid()
	return c.reply(api.ACLToken{AccessorID: uuid(), SecretID: a.root, Name: "Bootstrap Token", Type: "management", Global: true}, 1)
}

func writePolicy(c *call, in api.ACLPolicy) error {
	p, err := parsePolicy(in.Rules)
	if err != nil {
		return refuse(http.StatusBadRequest, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: %v\n\n", err)
	}
	c.s.authority.policies[c.name] = p
	return c.reply(nil, 1)
}

func writeToken(c *call, in api.ACLToken) error {
	if in.Type != "client" || len(in.Policies) == 0 {
		return refuse(http.StatusBadRequest, "token 0 invalid: 1 error occurred:\n\t* client token missing policies or roles\n\n")
	}
	in.AccessorID, in.SecretID = uuid(), uuid()
	c.s.authority.tokens[in.SecretID] = in.Policies
	return c.reply(in, 1)
}

// writeNamespace makes a namespace, which is nothing but its name.
func writeNamespace(c *call, in api.Namespace) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.namespaces[in.Name] = struct{}{}
	return c.reply(nil, 1)
}
