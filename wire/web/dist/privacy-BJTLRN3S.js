import{a as o}from"./chunk-4VU5XUFY.js";import"./chunk-SSPV67PF.js";import"./chunk-3HMRJDAY.js";export{o as Privacy};
