import{a as o}from"./chunk-3VWLEMWP.js";import"./chunk-SZL33EUO.js";import"./chunk-7YN2YTJT.js";import"./chunk-KC2XWJ3Z.js";export{o as Privacy};
