import{bb as r}from"./chunk-4VSVKM3D.js";r();
