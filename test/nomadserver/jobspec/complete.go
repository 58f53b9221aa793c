package jobspec

import (
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"
)

// complete adds what the parser itself adds, before the job is canonicalised.
func complete(job *api.Job) {
	if p := job.Periodic; p != nil && (p.Spec != nil || p.Specs != nil) {
		p.SpecType = new("cron")
	}
	for _, g := range job.TaskGroups {
		ports(g.Networks)
		for _, t := range g.Tasks {
			if t.Resources != nil {
				ports(t.Resources.Networks)
			}
			for _, one := range t.Templates {
				template(one)
			}
			vault(t.Vault)
			identity(t)
		}
	}
}

//go:fix inline

func orElse[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// ports tells those with a number of their own from those that get one.
func ports(networks []*api.NetworkResource) {
	for _, n := range networks {
		var dynamic, reserved []api.Port
		for _, p := range n.DynamicPorts {
			if p.Value > 0 {
				reserved = append(reserved, p)
			} else {
				dynamic = append(dynamic, p)
			}
		}
		if len(n.DynamicPorts) > 0 {
			n.DynamicPorts, n.ReservedPorts = dynamic, reserved
		}
	}
}

func template(t *api.Template) {
	orElse(&t.ChangeMode, "restart")
	orElse(&t.Perms, "0644")
	orElse(&t.Splay, 5*time.Second)
	orElse(&t.ErrMissingKey, false)
	if s := t.ChangeScript; s != nil {
		if s.Args == nil {
			s.Args = []string{}
		}
		orElse(&s.Timeout, 5*time.Second)
		orElse(&s.FailOnError, false)
		orElse(&s.RunOnFirstRender, false)
	}
}

func vault(v *api.Vault) {
	if v != nil {
		orElse(&v.Env, true)
		orElse(&v.DisableFile, false)
		orElse(&v.ChangeMode, "restart")
	}
}

// identity takes the default identity out of the list.
func identity(t *api.Task) {
	i := slices.IndexFunc(t.Identities, func(w *api.WorkloadIdentity) bool { return w.Name == "" || w.Name == "default" })
	if i >= 0 {
		t.Identity = t.Identities[i]
		t.Identities = slices.Delete(t.Identities, i, i+1)
	}
}
