import{Wb as r}from"./chunk-RDKKZJ2P.js";r();
