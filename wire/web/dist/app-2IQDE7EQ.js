import{md as r}from"./chunk-3HMRJDAY.js";r();
