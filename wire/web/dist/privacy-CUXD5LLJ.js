import{a as o}from"./chunk-Z7KLDEDR.js";import"./chunk-S5D755GC.js";import"./chunk-ZCGTV6QE.js";import"./chunk-RDKKZJ2P.js";export{o as Privacy};
