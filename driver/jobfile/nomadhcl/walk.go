package nomadhcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nearest"
)

// level tells what may stand in one kind of block. A nil function accepts and
// ignores.
type level struct {
	name   string
	attrs  map[string]func(*hclsyntax.Attribute)
	blocks map[string]func(*hclsyntax.Block)
	many   []string // blocks that may stand several times
}

// walk reads a body in the order written.
func (p *parser) walk(l level, body *hclsyntax.Body) {
	for _, a := range attributes(body) {
		use, ok := l.attrs[a.Name]
		switch {
		case !ok:
			p.refuse(l, p.pos(a.NameRange), "key", a.Name)
		case use != nil:
			use(a)
		}
	}
	first := map[string]jobfile.Pos{}
	for _, b := range body.Blocks {
		at := p.pos(b.TypeRange)
		use, ok := l.blocks[b.Type]
		if !ok {
			p.refuse(l, at, "block", b.Type)
			continue
		}
		if old, twice := first[b.Type]; twice && use != nil && !slices.Contains(l.many, b.Type) {
			p.fail(at, fmt.Sprintf("a second %s block in the %s", b.Type, l.name), fmt.Sprintf("want one; the first is at %s", old))
			continue
		}
		first[b.Type] = at
		if use != nil {
			use(b)
		}
	}
}

func (p *parser) refuse(l level, at jobfile.Pos, what, name string) {
	if why := reason(name); why != "" {
		p.fail(at, fmt.Sprintf("%s in the %s", name, l.name), why)
		return
	}
	known := slices.Sorted(maps.Keys(l.blocks))
	if what == "key" {
		known = append(slices.Sorted(maps.Keys(l.attrs)), known...)
	}
	want := "want one of " + strings.Join(slices.Compact(known), ", ")
	if near := nearest.Word(name, known); near != "" {
		want += fmt.Sprintf("; did you mean %q?", near)
	}
	p.fail(at, fmt.Sprintf("unknown %s %q in the %s", what, name, l.name), want)
}

// reason says why something that Nomad knows is not run here, and nothing for
// what it does not know.
func reason(name string) string {
	switch name {
	case "network", "service", "connect", "gateway":
		return "networks and services are not set up by the local scheduler" + toNomad
	case "volume", "volume_mount", "csi_plugin":
		return "volumes are not mounted by the local scheduler" + toNomad
	case "template":
		return "templates are not rendered by the local scheduler" + toNomad
	case "artifact":
		return "artifacts are not fetched by the local scheduler" + toNomad
	case "vault", "consul", "identity", "vault_token", "consul_token", "secret":
		return "secrets are not fetched by the local scheduler" + toNomad
	case "periodic", "parameterized", "dispatch_payload":
		return "jobs that start others are not run by the local scheduler" + toNomad
	case "multiregion":
		return "other regions are not known to the local scheduler" + toNomad
	case "lifecycle", "leader":
		return "jobs of several tasks are not run by the local scheduler" + toNomad
	case "device", "numa":
		return "devices are not assigned by the local scheduler" + toNomad
	case "user":
		return "a job runs as the user who submits it; leave the key out"
	}
	return ""
}

func ignore[T any](names ...string) map[string]func(T) {
	out := map[string]func(T){}
	for _, name := range names {
		out[name] = nil
	}
	return out
}

// with adds to a map of functions.
func with[T any](base, more map[string]func(T)) map[string]func(T) {
	maps.Copy(base, more)
	return base
}
