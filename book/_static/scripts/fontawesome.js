// Empty on purpose: it stands in place of the theme's file of this name, 1.5 MB that draw
// a second time the icons which the theme's style sheet and fonts draw already.
