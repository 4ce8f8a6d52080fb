import{a as o}from"./chunk-WAM3H4FP.js";import"./chunk-MGWSFHYI.js";import"./chunk-D5XZCAHK.js";import"./chunk-BTOOL2ZJ.js";export{o as Privacy};
