package nomadhcl

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

type (
	attrUse  = map[string]func(*hclsyntax.Attribute)
	blockUse = map[string]func(*hclsyntax.Block)
)

const toNomad = "; submit the job to Nomad"

// runsHere refuses what the local scheduler does not run as its author wrote it. What it
// accepts is read as for Nomad.
func (p *parser) runsHere(b *hclsyntax.Block) {
	at := p.pos(b.TypeRange)
	if len(b.Labels) != 1 {
		p.fail(at, "a job without one name", `want job "name" { ... }`)
	}
	var groups []*hclsyntax.Block
	p.walk(level{
		name: "job",
		attrs: with(ignore[*hclsyntax.Attribute]("datacenters", "region", "priority", "node_pool", "all_at_once", "id"), attrUse{
			"name": p.isText, "namespace": p.isText, "meta": p.isMap, "type": p.is(`want "batch"`, "batch"),
		}),
		blocks: with(ignore[*hclsyntax.Block]("constraint", "affinity", "spread", "reschedule", "update", "migrate", "restart", "ui", "tuning"), blockUse{
			"group": func(g *hclsyntax.Block) { groups = append(groups, g) },
			"meta":  p.isEntries,
		}),
		many: []string{"group"},
	}, b.Body)
	if _, typed := b.Body.Attributes["type"]; !typed {
		p.fail(at, "a job without type is a service", `want type = "batch"`)
	}
	if p.one(b, "group", groups) {
		p.groupRunsHere(groups[0])
	}
}

// one refuses any number of inner blocks but one.
func (p *parser) one(outer *hclsyntax.Block, kind string, inner []*hclsyntax.Block) bool {
	switch len(inner) {
	case 0:
		p.fail(p.pos(outer.TypeRange), fmt.Sprintf("a %s without a %s", outer.Type, kind), fmt.Sprintf(`want one %s "name" { ... }`, kind))
	case 1:
		return true
	default:
		p.fail(p.pos(inner[1].TypeRange), "a second "+kind, fmt.Sprintf("want one: jobs of several %ss are not run by the local scheduler%s", kind, toNomad))
	}
	return false
}

func (p *parser) groupRunsHere(b *hclsyntax.Block) {
	var tasks []*hclsyntax.Block
	p.walk(level{
		name: "group",
		attrs: with(ignore[*hclsyntax.Attribute](
			"shutdown_delay", "stop_after_client_disconnect", "max_client_disconnect", "prevent_reschedule_on_lost",
		), attrUse{
			"meta": p.isMap,
			"count": func(a *hclsyntax.Attribute) {
				if n, ok := p.integer(a.Expr, "count", 0, math.MaxInt64); ok && n != 1 {
					p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("count is %d", n),
						"want 1: several copies of a group are not run by the local scheduler"+toNomad)
				}
			},
		}),
		blocks: with(ignore[*hclsyntax.Block](
			"constraint", "affinity", "spread", "reschedule", "restart", "update", "migrate", "disconnect", "ephemeral_disk", "tuning",
		), blockUse{
			"task": func(t *hclsyntax.Block) { tasks = append(tasks, t) },
			"meta": p.isEntries,
			"scaling": func(s *hclsyntax.Block) {
				p.walk(level{
					name: "scaling block", attrs: ignore[*hclsyntax.Attribute]("enabled", "min", "max", "type"),
					blocks: blockUse{"policy": func(*hclsyntax.Block) {}},
				}, s.Body)
			},
		}),
		many: []string{"task"},
	}, b.Body)
	if p.one(b, "task", tasks) {
		p.taskRunsHere(tasks[0])
	}
}

func (p *parser) taskRunsHere(b *hclsyntax.Block) {
	p.walk(level{
		name: "task",
		attrs: with(ignore[*hclsyntax.Attribute]("kill_timeout", "kill_signal", "shutdown_delay"), attrUse{
			"meta": p.isMap, "env": p.isMap, "driver": p.is(`want "raw_exec" or "exec": others are not run by the local scheduler`, "raw_exec", "exec"),
		}),
		blocks: with(ignore[*hclsyntax.Block]("restart", "constraint", "affinity", "logs"), blockUse{
			"config": p.configRunsHere, "env": p.isEntries, "meta": p.isEntries, "resources": p.resourcesRunHere,
		}),
	}, b.Body)
	if _, ok := b.Body.Attributes["driver"]; !ok {
		p.fail(p.pos(b.TypeRange), "a task without a driver", `want driver = "raw_exec" or "exec"`)
	}
	if len(blocksOf(b.Body, "config")) == 0 {
		p.fail(p.pos(b.TypeRange), "a task without config", `want config { command = "..." }`)
	}
}

func (p *parser) configRunsHere(b *hclsyntax.Block) {
	p.walk(level{
		name: "config",
		attrs: attrUse{
			"command": func(a *hclsyntax.Attribute) {
				if s, ok := p.str(a.Expr, "command"); ok && s == "" {
					p.fail(p.pos(a.Expr.Range()), "command is empty", "want the path of a program")
				}
			},
			"args":     func(a *hclsyntax.Attribute) { p.strs(a.Expr, "args") },
			"work_dir": p.isText,
		},
	}, b.Body)
	if _, given := b.Body.Attributes["command"]; !given {
		p.fail(p.pos(b.TypeRange), "config without a command", `want command = "..."`)
	}
}

func (p *parser) resourcesRunHere(b *hclsyntax.Block) {
	const largest = 1 << 40 // MiB
	p.walk(level{name: "resources", attrs: attrUse{
		"cpu": p.isInteger(1, math.MaxInt32), "cores": p.isInteger(1, 1<<20),
		"memory": p.isInteger(1, largest), "memory_max": p.isInteger(-1, largest),
	}}, b.Body)
	_, cores := b.Body.Attributes["cores"]
	if cpu, both := b.Body.Attributes["cpu"]; both && cores {
		p.fail(p.pos(cpu.NameRange), "both cpu and cores", "want one of them")
	}
}

func (p *parser) isText(a *hclsyntax.Attribute) { p.str(a.Expr, a.Name) }

func (p *parser) isMap(a *hclsyntax.Attribute) { p.strMap(a.Expr, a.Name) }

func (p *parser) isInteger(low, high int64) func(*hclsyntax.Attribute) {
	return func(a *hclsyntax.Attribute) { p.integer(a.Expr, a.Name, low, high) }
}

// is refuses all texts but these.
func (p *parser) is(want string, texts ...string) func(*hclsyntax.Attribute) {
	return func(a *hclsyntax.Attribute) {
		if s, ok := p.str(a.Expr, a.Name); ok && !slices.Contains(texts, s) {
			p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("%s is %q", a.Name, s), want)
		}
	}
}

// isEntries refuses what is no map of texts in a block that is one.
func (p *parser) isEntries(b *hclsyntax.Block) {
	for _, a := range attributes(b.Body) {
		p.isText(a)
	}
	for _, inner := range b.Body.Blocks {
		p.fail(p.pos(inner.TypeRange), fmt.Sprintf("the block %q in %s", inner.Type, b.Type), "want NAME = value")
	}
}
