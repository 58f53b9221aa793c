package acl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// rules are what a policy says. Names may hold asterisks.
type rules struct {
	namespaces map[string][]string            // name → capabilities
	variables  map[string]map[string][]string // name → path → capabilities
	words      map[string]string              // agent, node, operator, quota, plugin → read, write, deny
}

func newRules() rules {
	return rules{namespaces: map[string][]string{}, variables: map[string]map[string][]string{}, words: map[string]string{}}
}

var nameOK = regexp.MustCompile("^[a-zA-Z0-9-*]{1,128}$")

// parse reads a policy in HCL or JSON.
func parse(text string) (rules, error) {
	out := newRules()
	if text == "" {
		return out, nil
	}
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		file, diags = hcljson.Parse([]byte(text), "policy.json")
	} else {
		file, diags = hclsyntax.ParseConfig(spread(text), "policy.hcl", hcl.InitialPos)
	}
	if diags.HasErrors() {
		return out, fmt.Errorf("Failed to parse ACL Policy: %w", diags) //nolint:staticcheck // the agent's words
	}
	singles := []string{"agent", "node", "operator", "quota", "plugin", "sentinel"}
	s := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "namespace", LabelNames: []string{"name"}}, {Type: "node_pool", LabelNames: []string{"name"}}, {Type: "host_volume", LabelNames: []string{"name"}},
	}}
	for _, name := range singles {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: name})
	}
	content, rest, diags := file.Body.PartialContent(s)
	if diags.HasErrors() {
		return out, diags
	}
	if extra := unknown(rest); len(extra) > 0 {
		return out, fmt.Errorf("Invalid or duplicate policy keys: %s", strings.Join(extra, ", ")) //nolint:staticcheck // as above
	}
	if len(content.Blocks) == 0 {
		return out, fmt.Errorf("Invalid policy: %s", text) //nolint:staticcheck // as above
	}
	for _, b := range content.Blocks {
		if err := out.add(b); err != nil {
			return out, err
		}
	}
	return out, nil
}

// spread puts every brace on a line of its own: the agent reads policies in the older
// form of the language, in which blocks within blocks may stand on one line.
func spread(text string) []byte {
	tokens, _ := hclsyntax.LexConfig([]byte(text), "policy.hcl", hcl.InitialPos)
	var out []byte
	at := 0
	for _, t := range tokens {
		out = append(out, text[at:t.Range.Start.Byte]...)
		at = t.Range.End.Byte
		switch t.Type {
		case hclsyntax.TokenOBrace:
			out = append(out, "{\n"...)
		case hclsyntax.TokenCBrace:
			out = append(out, "\n}\n"...)
		default:
			out = append(out, t.Bytes...)
		}
	}
	return append(out, text[at:]...)
}

// unknown are the words of a body that nobody read.
func unknown(rest hcl.Body) []string {
	var out []string
	if body, ok := rest.(*hclsyntax.Body); ok {
		attrs, _ := rest.JustAttributes()
		for name := range attrs {
			out = append(out, name)
		}
		read := []string{"namespace", "node_pool", "host_volume", "agent", "node", "operator", "quota", "plugin", "sentinel"}
		for _, b := range body.Blocks {
			if !slices.Contains(read, b.Type) {
				out = append(out, b.Type)
			}
		}
		slices.Sort(out)
		return out
	}
	attrs, _ := rest.JustAttributes()
	for name := range attrs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// block is what most blocks hold.
type block struct {
	Policy       string     `hcl:"policy,optional"`
	Capabilities []string   `hcl:"capabilities,optional"`
	Variables    *variables `hcl:"variables,block"`
}

type variables struct {
	Paths []path `hcl:"path,block"`
}

type path struct {
	Spec         string   `hcl:"spec,label"`
	Capabilities []string `hcl:"capabilities"`
}

func (r rules) add(b *hcl.Block) error {
	var in block
	if diags := gohcl.DecodeBody(b.Body, nil, &in); diags.HasErrors() {
		return diags
	}
	words := []string{"", "read", "write", "deny", "scale"}
	if !slices.Contains(words, in.Policy) && b.Type != "plugin" {
		return fmt.Errorf("Invalid %s policy: %s", b.Type, in.Policy) //nolint:staticcheck // the agent's words
	}
	if b.Type != "namespace" {
		r.words[b.Type] = in.Policy
		return nil
	}
	name := b.Labels[0]
	if !nameOK.MatchString(name) {
		return fmt.Errorf("Invalid namespace name: %s", name) //nolint:staticcheck // as above
	}
	for _, c := range in.Capabilities {
		if !known(c) {
			return fmt.Errorf("Invalid namespace capability '%s': %s", c, name) //nolint:staticcheck // as above
		}
	}
	r.namespaces[name] = append(append(r.namespaces[name], in.Capabilities...), ofNamespace(in.Policy)...)
	if in.Variables == nil {
		return nil
	}
	if len(in.Variables.Paths) == 0 {
		return errors.New("Invalid variable policy: no variable paths in namespace " + name)
	}
	if r.variables[name] == nil {
		r.variables[name] = map[string][]string{}
	}
	for _, p := range in.Variables.Paths {
		if strings.HasPrefix(p.Spec, "/") {
			return fmt.Errorf("Invalid variable path %q in namespace %s: cannot start with a leading '/'`", p.Spec, name) //nolint:staticcheck // as above
		}
		for _, c := range p.Capabilities {
			if !slices.Contains([]string{"list", "read", "write", "destroy", "deny"}, c) {
				return fmt.Errorf("Invalid variable capability '%s' in namespace %s", c, name) //nolint:staticcheck // as above
			}
		}
		r.variables[name][p.Spec] = append(r.variables[name][p.Spec], ofVariables(p.Capabilities)...)
	}
	return nil
}

// merge puts what another policy says beside this one's.
func (r rules) merge(other rules) {
	for name, list := range other.namespaces {
		r.namespaces[name] = append(slices.Clone(r.namespaces[name]), list...)
	}
	for name, paths := range other.variables {
		if r.variables[name] == nil {
			r.variables[name] = map[string][]string{}
		}
		for spec, list := range paths {
			r.variables[name][spec] = append(slices.Clone(r.variables[name][spec]), list...)
		}
	}
	for kind, word := range other.words {
		rank := []string{"", "read", "write", "deny"}
		if slices.Index(rank, word) > slices.Index(rank, r.words[kind]) {
			r.words[kind] = word
		}
	}
}
