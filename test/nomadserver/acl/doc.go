// Package acl keeps the tokens and policies of test/nomadserver and says who may what.
//
// In come requests to /v1/acl/ (bootstrap, policies, tokens), as Nomad has them, and
// policies in HCL or JSON; out come tokens and decisions. What was one capability until
// Nomad 1.x, submit-job, is still all of those that it was split into in 2.0
// (register-job, plan-job, revert-job, ...). A task's own identity is a token too: what
// it may is said by the policies that are bound to its namespace, job, group or task,
// and its job's own variables it may always read.
//
// Left out: roles, one-time tokens, OIDC, federation, and everything that is
// Enterprise's. Identities are not signed: they are known by having been given out.
package acl
