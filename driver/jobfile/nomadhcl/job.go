package nomadhcl

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

type (
	attrUse  = map[string]func(*hclsyntax.Attribute)
	blockUse = map[string]func(*hclsyntax.Block)
)

func (p *parser) jobBlock(b *hclsyntax.Block) {
	at := p.pos(b.TypeRange)
	if len(b.Labels) != 1 {
		p.fail(at, "a job without one name", `want job "name" { ... }`)
	} else {
		p.job.Name = b.Labels[0]
	}
	typed := false
	var groups []*hclsyntax.Block
	p.walk(level{
		name: "job",
		attrs: with(ignore[*hclsyntax.Attribute]("datacenters", "region", "priority", "node_pool", "all_at_once", "id"), attrUse{
			"name":      func(a *hclsyntax.Attribute) { p.setString(&p.job.Name, a) },
			"namespace": func(a *hclsyntax.Attribute) { p.setString(&p.job.Partition, a) },
			"meta":      p.metaAttr,
			"type": func(a *hclsyntax.Attribute) {
				typed = true
				if s, ok := p.str(a.Expr, "type"); ok && s != "batch" {
					p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("type is %q", s), `want "batch"`)
				}
			},
		}),
		blocks: with(ignore[*hclsyntax.Block]("constraint", "affinity", "spread", "reschedule", "update", "migrate", "restart", "ui"), blockUse{
			"group":  func(g *hclsyntax.Block) { groups = append(groups, g) },
			"meta":   p.metaBlock,
			"tuning": p.tuningBlock,
		}),
		many: []string{"group", "tuning"},
	}, b.Body)
	if !typed {
		p.fail(at, "a job without type is a service", `want type = "batch"`)
	}
	switch len(groups) {
	case 0:
		p.fail(at, "a job without a group", `want one group "name" { ... }`)
	case 1:
		p.group(groups[0])
	default:
		p.fail(p.pos(groups[1].TypeRange), "a second group",
			"want one: jobs of several groups are not run by the local scheduler; submit the job to Nomad")
	}
}

func (p *parser) group(b *hclsyntax.Block) {
	var tasks []*hclsyntax.Block
	p.walk(level{
		name: "group",
		attrs: with(ignore[*hclsyntax.Attribute](
			"shutdown_delay", "stop_after_client_disconnect", "max_client_disconnect", "prevent_reschedule_on_lost",
		), attrUse{
			"meta": p.metaAttr,
			"count": func(a *hclsyntax.Attribute) {
				if n, ok := p.integer(a.Expr, "count", 0, math.MaxInt64); ok && n != 1 {
					p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("count is %d", n),
						"want 1: several copies of a group are not run by the local scheduler; submit the job to Nomad")
				}
			},
		}),
		blocks: with(ignore[*hclsyntax.Block](
			"constraint", "affinity", "spread", "reschedule", "restart", "update", "migrate", "disconnect", "ephemeral_disk",
		), blockUse{
			"task":    func(t *hclsyntax.Block) { tasks = append(tasks, t) },
			"meta":    p.metaBlock,
			"tuning":  p.tuningBlock,
			"scaling": p.scaling,
		}),
		many: []string{"task", "tuning"},
	}, b.Body)
	switch len(tasks) {
	case 0:
		p.fail(p.pos(b.TypeRange), "a group without a task", `want one task "name" { ... }`)
	case 1:
		p.task(tasks[0])
	default:
		p.fail(p.pos(tasks[1].TypeRange), "a second task",
			"want one: jobs of several tasks are not run by the local scheduler; submit the job to Nomad")
	}
}

// scaling looks for the stanza in the group's scaling policy, the one place of a
// running job that may change without a restart. The rest of it steers others.
func (p *parser) scaling(b *hclsyntax.Block) {
	p.walk(level{
		name:  "scaling block",
		attrs: ignore[*hclsyntax.Attribute]("enabled", "min", "max", "type"),
		blocks: blockUse{"policy": func(policy *hclsyntax.Block) {
			for _, inner := range policy.Body.Blocks {
				if inner.Type == "tuning" {
					p.tuningBlock(inner)
				}
			}
			if a, ok := policy.Body.Attributes["tuning"]; ok {
				p.tuningAttr(a)
			}
		}},
	}, b.Body)
}

func (p *parser) task(b *hclsyntax.Block) {
	driver, configured := false, false
	at := p.pos(b.TypeRange)
	p.walk(level{
		name: "task",
		attrs: with(ignore[*hclsyntax.Attribute]("kill_timeout", "kill_signal", "shutdown_delay"), attrUse{
			"meta": p.metaAttr,
			"env": func(a *hclsyntax.Attribute) {
				if m, ok := p.strMap(a.Expr, "env"); ok {
					maps.Copy(p.job.Env, m)
				}
			},
			"driver": func(a *hclsyntax.Attribute) {
				driver = true
				if s, ok := p.str(a.Expr, "driver"); ok && !slices.Contains([]string{"raw_exec", "exec"}, s) {
					p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("driver is %q", s), `want "raw_exec" or "exec": others are not run by the local scheduler`)
				}
			},
		}),
		blocks: with(ignore[*hclsyntax.Block]("restart", "constraint", "affinity", "logs"), blockUse{
			"config": func(c *hclsyntax.Block) {
				configured = true
				p.config(c)
			},
			"env": func(e *hclsyntax.Block) {
				p.entries(e, "env", func(a *hclsyntax.Attribute) { p.setEntry(p.job.Env, a) })
			},
			"meta":      p.metaBlock,
			"resources": p.resources,
		}),
	}, b.Body)
	if !driver {
		p.fail(at, "a task without a driver", `want driver = "raw_exec" or "exec"`)
	}
	if !configured {
		p.fail(at, "a task without config", `want config { command = "..." }`)
	}
}

func (p *parser) config(b *hclsyntax.Block) {
	command, args := "", []string(nil)
	given := false
	p.walk(level{
		name: "config",
		attrs: attrUse{
			"command": func(a *hclsyntax.Attribute) {
				given = true
				s, ok := p.str(a.Expr, "command")
				if ok && s == "" {
					p.fail(p.pos(a.Expr.Range()), "command is empty", "want the path of a program")
				}
				command = s
			},
			"args": func(a *hclsyntax.Attribute) {
				args, _ = p.strs(a.Expr, "args")
			},
			"work_dir": func(a *hclsyntax.Attribute) { p.setString(&p.job.Dir, a) },
		},
	}, b.Body)
	if !given {
		p.fail(p.pos(b.TypeRange), "config without a command", `want command = "..."`)
	}
	p.job.Argv = append([]string{command}, args...)
}

func (p *parser) resources(b *hclsyntax.Block) {
	const largest = 1 << 40 // MiB, and cores too
	var memory, ceiling int64
	var cpu *hclsyntax.Attribute
	p.walk(level{
		name: "resources",
		attrs: attrUse{
			"cpu": func(a *hclsyntax.Attribute) {
				cpu = a
				p.integer(a.Expr, "cpu", 1, math.MaxInt32)
			},
			"cores": func(a *hclsyntax.Attribute) {
				if n, ok := p.integer(a.Expr, "cores", 1, 1<<20); ok {
					p.job.Cores = int(n)
				}
			},
			"memory":     func(a *hclsyntax.Attribute) { memory, _ = p.integer(a.Expr, "memory", 1, largest) },
			"memory_max": func(a *hclsyntax.Attribute) { ceiling, _ = p.integer(a.Expr, "memory_max", -1, largest) },
		},
	}, b.Body)
	if _, both := b.Body.Attributes["cores"]; both && cpu != nil {
		p.fail(p.pos(cpu.NameRange), "both cpu and cores", "want one of them")
	}
	p.job.MemoryBytes = max(memory, ceiling) << 20
	if ceiling < 0 {
		p.job.MemoryBytes = 0
	}
}

func (p *parser) setString(to *string, a *hclsyntax.Attribute) {
	if s, ok := p.str(a.Expr, a.Name); ok {
		*to = s
	}
}

func (p *parser) setEntry(to map[string]string, a *hclsyntax.Attribute) {
	if s, ok := p.str(a.Expr, a.Name); ok {
		to[a.Name] = s
	}
}

// entries reads a block that is a map.
func (p *parser) entries(b *hclsyntax.Block, name string, use func(*hclsyntax.Attribute)) {
	for _, a := range attributes(b.Body) {
		use(a)
	}
	for _, inner := range b.Body.Blocks {
		p.fail(p.pos(inner.TypeRange), fmt.Sprintf("the block %q in %s", inner.Type, name), "want NAME = value")
	}
}
