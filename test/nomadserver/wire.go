package nomadserver

import (
	"context"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/acl"
	"pitchpipe/test/nomadserver/jobspec"
	"pitchpipe/test/nomadserver/task"
	"pitchpipe/test/nomadserver/vars"
)

// ports are the parts that other packages bring.
type ports struct {
	start     StartTask
	parse     ParseJob
	variables Variables
	authority Authority
}

func (s *Server) wire() ports {
	authority := acl.New().Tie(s.store.Next)
	hooks := vars.Hooks{Next: s.store.Next}
	if s.opts.ACL {
		hooks.Allows, hooks.Management = authority.AllowsVariable, authority.Management
	}
	return ports{
		start: startTask, parse: jobspec.ParseInput, authority: authority, variables: vars.New(time.Now).Tie(hooks),
	}
}

func startTask(ctx context.Context, s task.Spec, changed func(api.TaskState)) (Task, error) {
	t, err := task.Start(ctx, s, changed)
	if err != nil {
		return nil, err // not t: a nil *task.Task would be a Task that is not nil
	}
	return t, nil
}
