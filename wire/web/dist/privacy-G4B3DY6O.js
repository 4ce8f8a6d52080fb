import{a as o}from"./chunk-EGUTROJ6.js";import"./chunk-XVLHEEAR.js";import"./chunk-UXYZ5QGE.js";export{o as Privacy};
