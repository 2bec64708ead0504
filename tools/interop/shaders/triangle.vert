// SPDX-License-Identifier: MIT OR Apache-2.0
#version 450

// A triangle around the middle, without any input.
void main()
{
	const vec2 corners[3] = vec2[](vec2(0.0, -0.8), vec2(0.8, 0.8), vec2(-0.8, 0.8));
	gl_Position = vec4(corners[gl_VertexIndex], 0.0, 1.0);
}
