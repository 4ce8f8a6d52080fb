import{hb as r}from"./chunk-4QBYZBRM.js";r();
