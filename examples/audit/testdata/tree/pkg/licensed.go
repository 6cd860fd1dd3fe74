// Copyright 2026 The Authors.

package pkg
